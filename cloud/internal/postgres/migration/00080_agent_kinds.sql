-- +goose Up

-- The kinds of messages, as in package protocol, from which the access rules for an external broker follow; a test compares
-- them. A new kind is a new row: the view stays as it is. own: never on the topics of a whole branch.
CREATE TABLE mqtt_kind (
    name   text    PRIMARY KEY,
    action text    NOT NULL CHECK (action IN ('publish', 'subscribe')), -- of the agent
    own    boolean NOT NULL DEFAULT false
);
INSERT INTO mqtt_kind (name, action, own) VALUES
    ('door/ask', 'subscribe', false), ('door/claim', 'publish', false), ('door/grant', 'subscribe', false), ('door/deny', 'subscribe', false),
    ('door/result', 'publish', false), ('climate/command', 'subscribe', false), ('climate/result', 'publish', false),
    ('sensors/read', 'subscribe', false), ('sensors/readings', 'publish', false), ('keys', 'subscribe', true),
    ('status', 'publish', false), ('heartbeat', 'publish', false), ('telemetry', 'publish', false),
    ('update', 'subscribe', true), ('credential/rotate', 'subscribe', true), ('credential/new', 'publish', true);

CREATE OR REPLACE VIEW mqtt_acl AS
    SELECT a.username, 'allow' AS permission, kind.action, 'yeolda/v1/' || b.code || topic.part || kind.name AS topic
    FROM agent_credential a JOIN branch b ON b.id = a.branch_id
    CROSS JOIN LATERAL (VALUES ('/'), ('/agent/' || a.username || '/')) AS topic (part)
    CROSS JOIN mqtt_kind AS kind
    WHERE a.revoked_at IS NULL;
