-- +goose Up

-- The kinds of the beacon and of passes. From now on, kinds of a credential have no topics of a branch, which agents of the
-- previous release and standby agents share.
INSERT INTO mqtt_kind (name, action, own) VALUES
    ('beacon', 'subscribe', true), ('passes/list', 'subscribe', true), ('passes/applied', 'publish', true),
    ('passes/entry', 'publish', true), ('passes/ack', 'subscribe', true);

CREATE OR REPLACE VIEW mqtt_acl AS
    SELECT a.username, 'allow' AS permission, kind.action, 'yeolda/v1/' || b.code || topic.part || kind.name AS topic
    FROM agent_credential a JOIN branch b ON b.id = a.branch_id
    CROSS JOIN LATERAL (VALUES ('/', false), ('/agent/' || a.username || '/', true)) AS topic (part, own)
    CROSS JOIN mqtt_kind AS kind
    WHERE a.revoked_at IS NULL AND (topic.own OR NOT kind.own);
