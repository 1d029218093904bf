-- +goose NO TRANSACTION
-- +goose Up

-- Commands to air conditioners are deleted after a year. The build waits for transactions such as a backup without blocking others.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS airconditioner_command_by_time;
CREATE INDEX CONCURRENTLY airconditioner_command_by_time ON airconditioner_command (at);

RESET lock_timeout;
