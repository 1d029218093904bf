-- +goose NO TRANSACTION
-- +goose Up

-- The rows of a span of time that are linked into the audit log, built without blocking writes.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS ledger_by_time;
CREATE INDEX CONCURRENTLY ledger_by_time ON ledger (at);

DROP INDEX CONCURRENTLY IF EXISTS money_entry_by_booking;
CREATE INDEX CONCURRENTLY money_entry_by_booking ON money_entry (booked_at);

DROP INDEX CONCURRENTLY IF EXISTS door_request_by_time;
CREATE INDEX CONCURRENTLY door_request_by_time ON door_request (created_at);

DROP INDEX CONCURRENTLY IF EXISTS pass_entry_by_storage;
CREATE INDEX CONCURRENTLY pass_entry_by_storage ON pass_entry (stored_at);

RESET lock_timeout;
