-- +goose Up

-- The access rules for an external broker (00011), now with the topics of single credentials and the kind keys. They are
-- those of package protocol; a test compares them. The topics of a branch serve the will and agents of the previous release.
CREATE OR REPLACE VIEW mqtt_acl AS
    SELECT a.username, 'allow' AS permission, kind.action, 'yeolda/v1/' || b.code || topic.part || kind.name AS topic
    FROM agent_credential a JOIN branch b ON b.id = a.branch_id
    CROSS JOIN LATERAL (VALUES ('/'), ('/agent/' || a.username || '/')) AS topic (part)
    CROSS JOIN (VALUES
        ('door/ask', 'subscribe'), ('door/claim', 'publish'), ('door/grant', 'subscribe'), ('door/deny', 'subscribe'),
        ('door/result', 'publish'), ('climate/command', 'subscribe'), ('climate/result', 'publish'),
        ('sensors/read', 'subscribe'), ('sensors/readings', 'publish'), ('keys', 'subscribe'),
        ('status', 'publish'), ('heartbeat', 'publish'), ('telemetry', 'publish')
    ) AS kind (name, action)
    WHERE a.revoked_at IS NULL;
