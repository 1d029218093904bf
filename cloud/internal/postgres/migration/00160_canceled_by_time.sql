-- +goose NO TRANSACTION
-- +goose Up

-- The cancelled reservations of a day, built without blocking reads or writes of reservations.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS reservation_canceled_by_time;
CREATE INDEX CONCURRENTLY reservation_canceled_by_time ON reservation (branch_id, start_at) WHERE state = 'CANCELED' AND method IS NOT NULL;

RESET lock_timeout;
