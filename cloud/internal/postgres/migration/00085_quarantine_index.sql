-- +goose NO TRANSACTION
-- +goose Up

-- The quarantines of a branch, built without blocking reads or writes of reservations.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS reservation_quarantine;
CREATE INDEX CONCURRENTLY reservation_quarantine ON reservation (branch_id) WHERE quarantine_of IS NOT NULL AND state = 'HOLD';

RESET lock_timeout;
