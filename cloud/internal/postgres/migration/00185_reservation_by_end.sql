-- +goose NO TRANSACTION
-- +goose Up

-- The planner has no statistics for upper(occupied) and scans a long history instead of using reservation_upcoming; for
-- end_at it has them. The build waits for transactions such as a backup without blocking others.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS reservation_by_end;
CREATE INDEX CONCURRENTLY reservation_by_end ON reservation (end_at, state)
    WHERE state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING');

RESET lock_timeout;
