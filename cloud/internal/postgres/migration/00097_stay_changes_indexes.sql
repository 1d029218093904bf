-- +goose NO TRANSACTION
-- +goose Up

-- The indexes of 00096, built without blocking reads or writes of reservations, and the check of its constraints.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS reservation_by_root;
CREATE INDEX CONCURRENTLY reservation_by_root ON reservation (extends, start_at) WHERE extends IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS reservation_by_replaced;
CREATE INDEX CONCURRENTLY reservation_by_replaced ON reservation (replaces) WHERE replaces IS NOT NULL;

ALTER TABLE reservation VALIDATE CONSTRAINT reservation_occupied;
ALTER TABLE reservation VALIDATE CONSTRAINT reservation_extends;
ALTER TABLE reservation VALIDATE CONSTRAINT reservation_replaces;

RESET lock_timeout;
