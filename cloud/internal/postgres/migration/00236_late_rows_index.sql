-- +goose NO TRANSACTION
-- +goose Up

-- The rows of 00235, built without blocking writes.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS ledger_late;
CREATE INDEX CONCURRENTLY ledger_late ON ledger (late_at) WHERE late_at IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS money_entry_late;
CREATE INDEX CONCURRENTLY money_entry_late ON money_entry (late_at) WHERE late_at IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS door_request_late;
CREATE INDEX CONCURRENTLY door_request_late ON door_request (late_at) WHERE late_at IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS pass_entry_late;
CREATE INDEX CONCURRENTLY pass_entry_late ON pass_entry (late_at) WHERE late_at IS NOT NULL;

RESET lock_timeout;
