-- +goose NO TRANSACTION
-- +goose Up

-- The credentials that became active a moment ago are looked for five times a second. The build waits for transactions such as a backup
-- without blocking others.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS agent_credential_by_activation;
CREATE INDEX CONCURRENTLY agent_credential_by_activation ON agent_credential (activated_at) WHERE activated_at IS NOT NULL;

RESET lock_timeout;
