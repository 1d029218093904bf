-- +goose NO TRANSACTION
-- +goose Up

-- The build waits for transactions such as a backup without blocking others.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS reservation_by_change;
CREATE INDEX CONCURRENTLY reservation_by_change ON reservation (branch_id, changed);

RESET lock_timeout;
