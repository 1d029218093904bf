-- +goose Up

-- What a broker outside needs to know of the agents, and all that it may: who they are and what they may do. Its role
-- needs nothing but the right to read these two. The rules are those of package protocol; a test compares them.
CREATE VIEW mqtt_user AS
    SELECT username, encode(secret_hash, 'hex') AS password_hash FROM agent_credential WHERE revoked_at IS NULL;

CREATE VIEW mqtt_acl AS
    SELECT a.username, 'allow' AS permission, kind.action, 'yeolda/v1/' || b.code || '/' || kind.name AS topic
    FROM agent_credential a JOIN branch b ON b.id = a.branch_id
    CROSS JOIN (VALUES
        ('door/ask', 'subscribe'), ('door/claim', 'publish'), ('door/grant', 'subscribe'), ('door/deny', 'subscribe'),
        ('door/result', 'publish'), ('climate/command', 'subscribe'), ('climate/result', 'publish'),
        ('sensors/read', 'subscribe'), ('sensors/readings', 'publish'),
        ('status', 'publish'), ('heartbeat', 'publish'), ('telemetry', 'publish')
    ) AS kind (name, action)
    WHERE a.revoked_at IS NULL;

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'emqx') THEN
        GRANT SELECT ON mqtt_user, mqtt_acl TO emqx;
    END IF;
END $$;
-- +goose StatementEnd
