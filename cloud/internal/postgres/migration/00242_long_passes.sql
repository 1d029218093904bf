-- +goose NO TRANSACTION
-- +goose Up

-- Passes of more than a day, of bookings of partners that last up to a month. A new PIN must differ from theirs, and the index
-- pass_by_window finds them only among all passes that end within this month.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS pass_long;
CREATE INDEX CONCURRENTLY pass_long ON pass (branch_id, not_after) WHERE not_after - not_before > interval '1 day';
RESET lock_timeout;
