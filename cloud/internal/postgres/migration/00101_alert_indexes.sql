-- +goose NO TRANSACTION
-- +goose Up

-- The sweep for alerts finds failed presses, failed messages and incidents by these, built without blocking writes.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS door_request_failed;
CREATE INDEX CONCURRENTLY door_request_failed ON door_request (created_at) WHERE state IN ('FAILED', 'UNKNOWN');

DROP INDEX CONCURRENTLY IF EXISTS message_failed;
CREATE INDEX CONCURRENTLY message_failed ON message (created_at) WHERE state = 'FAILED';

DROP INDEX CONCURRENTLY IF EXISTS alert_by_branch;
CREATE INDEX CONCURRENTLY alert_by_branch ON alert (branch, id);

DROP INDEX CONCURRENTLY IF EXISTS alert_unclosed;
CREATE INDEX CONCURRENTLY alert_unclosed ON alert (kind, branch, subject) WHERE closed_at IS NULL;

RESET lock_timeout;
