-- +goose NO TRANSACTION
-- +goose Up

-- The key of door events in 00217, which contains their time, built without blocking reads or writes.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS door_event_first_pkey;
CREATE UNIQUE INDEX CONCURRENTLY door_event_first_pkey ON door_event (branch_id, at, id);

RESET lock_timeout;
