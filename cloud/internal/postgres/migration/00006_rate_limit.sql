-- +goose Up

-- A window begins with the first try, not on a round clock time, so that a key has one row: nobody gets
-- two windows' worth of tries around a boundary of the clock, and counting is one upsert.
TRUNCATE rate_limit;
ALTER TABLE rate_limit DROP CONSTRAINT rate_limit_pkey;
ALTER TABLE rate_limit ADD PRIMARY KEY (key);
CREATE INDEX rate_limit_by_window ON rate_limit (window_start);
