-- +goose NO TRANSACTION
-- +goose Up

-- The commands to a unit since it was switched on for a stay.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS airconditioner_command_by_unit;
CREATE INDEX CONCURRENTLY airconditioner_command_by_unit ON airconditioner_command (branch_id, unit, at);
RESET lock_timeout;
