-- +goose NO TRANSACTION
-- +goose Up

-- Open rotations are read every two seconds and are few: without an index, each look reads the reports of all agents.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS agent_credential_rotating;
CREATE INDEX CONCURRENTLY agent_credential_rotating ON agent_credential (username) WHERE rotation IS NOT NULL;
RESET lock_timeout;
