-- +goose NO TRANSACTION
-- +goose Up

-- Readings are partitioned by week. The existing table becomes the partition of all times until a bound in two to three weeks, without
-- being copied. Every statement may run again after a later one has failed.
RESET lock_timeout; -- of an earlier attempt

-- Readings are written by a statement that selects their branch, and no branch is ever deleted.
ALTER TABLE sensor_reading DROP CONSTRAINT IF EXISTS sensor_reading_branch_id_fkey;

-- The bound, as a check, so that the table is attached without being scanned under a lock. No row that is written before it is refused: the
-- time of a reading is that of its arrival.
-- +goose StatementBegin
DO $$
DECLARE
    bound timestamptz := (SELECT substring(pg_get_constraintdef(oid) FROM '''([^'']+)''')::timestamptz
        FROM pg_constraint WHERE conrelid = 'sensor_reading'::regclass AND conname = 'sensor_reading_bound');
BEGIN
    IF (SELECT relkind = 'r' FROM pg_class WHERE oid = 'sensor_reading'::regclass) AND (bound IS NULL OR bound < now() + interval '7 days') THEN
        EXECUTE format('ALTER TABLE sensor_reading DROP CONSTRAINT IF EXISTS sensor_reading_bound, ADD CONSTRAINT sensor_reading_bound CHECK (at < %L) NOT VALID',
            date_bin('7 days', now() + interval '14 days', '2001-01-01 00:00+00') + interval '168 hours');
    END IF;
END $$;
-- +goose StatementEnd

-- Readings beyond the bound, of a time when the clock of a server was wrong, move to the partition of all other times.
CREATE TABLE IF NOT EXISTS sensor_reading_rest (
    branch_id integer          NOT NULL,
    location  text             NOT NULL,
    at        timestamptz      NOT NULL,
    celsius   double precision NOT NULL,
    humidity  double precision NOT NULL,
    PRIMARY KEY (branch_id, location, at)
);
-- +goose StatementBegin
DO $$
DECLARE
    bound timestamptz := (SELECT substring(pg_get_constraintdef(oid) FROM '''([^'']+)''')::timestamptz
        FROM pg_constraint WHERE conrelid = 'sensor_reading'::regclass AND conname = 'sensor_reading_bound');
BEGIN
    WITH back AS (DELETE FROM sensor_reading_rest WHERE at < bound RETURNING *) -- of an attempt with an earlier bound
    INSERT INTO sensor_reading SELECT * FROM back;
    WITH stray AS (DELETE FROM sensor_reading WHERE at >= bound RETURNING *)
    INSERT INTO sensor_reading_rest SELECT * FROM stray;
END $$;
-- +goose StatementEnd

-- The scan blocks neither reads nor writes.
SET lock_timeout = 0;
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'sensor_reading'::regclass AND conname = 'sensor_reading_bound' AND NOT convalidated) THEN
        ALTER TABLE sensor_reading VALIDATE CONSTRAINT sensor_reading_bound;
    END IF;
END $$;
-- +goose StatementEnd
RESET lock_timeout;

-- The exchange takes some milliseconds.
-- +goose StatementBegin
DO $$
DECLARE
    bound timestamptz;
BEGIN
    IF (SELECT relkind = 'p' FROM pg_class WHERE oid = 'sensor_reading'::regclass) THEN
        RETURN;
    END IF;
    LOCK TABLE sensor_reading IN ACCESS EXCLUSIVE MODE;
    bound := (SELECT substring(pg_get_constraintdef(oid) FROM '''([^'']+)''')::timestamptz
        FROM pg_constraint WHERE conrelid = 'sensor_reading'::regclass AND conname = 'sensor_reading_bound');
    ALTER TABLE sensor_reading RENAME TO sensor_reading_first; -- contract: the new table has the name
    ALTER TABLE sensor_reading_first RENAME CONSTRAINT sensor_reading_pkey TO sensor_reading_first_pkey; -- contract: no program names it
    ALTER INDEX sensor_reading_by_time RENAME TO sensor_reading_first_by_time; -- contract: no program names it
    CREATE TABLE sensor_reading (
        branch_id integer          NOT NULL,
        location  text             NOT NULL,
        at        timestamptz      NOT NULL,
        celsius   double precision NOT NULL,
        humidity  double precision NOT NULL,
        PRIMARY KEY (branch_id, location, at)
    ) PARTITION BY RANGE (at);
    CREATE INDEX sensor_reading_by_time ON sensor_reading USING brin (at);
    EXECUTE format('ALTER TABLE sensor_reading ATTACH PARTITION sensor_reading_first FOR VALUES FROM (MINVALUE) TO (%L)', bound);
    ALTER TABLE sensor_reading ATTACH PARTITION sensor_reading_rest DEFAULT;
    ALTER TABLE sensor_reading_first DROP CONSTRAINT sensor_reading_bound;
    CREATE TRIGGER sensor_reading_kept BEFORE DELETE ON sensor_reading FOR EACH ROW EXECUTE FUNCTION keep_young_row('sensor_reading');
    PERFORM copy_rights('sensor_reading_first', 'sensor_reading'), copy_rights('sensor_reading_first', 'sensor_reading_rest');
END $$;
-- +goose StatementEnd
