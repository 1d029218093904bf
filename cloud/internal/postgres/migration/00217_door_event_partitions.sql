-- +goose NO TRANSACTION
-- +goose Up

-- Door events are partitioned by four weeks, as readings are in 00213.
RESET lock_timeout; -- of an earlier attempt

-- +goose StatementBegin
DO $$
DECLARE
    bound timestamptz := (SELECT substring(pg_get_constraintdef(oid) FROM '''([^'']+)''')::timestamptz
        FROM pg_constraint WHERE conrelid = 'door_event'::regclass AND conname = 'door_event_bound');
BEGIN
    IF (SELECT relkind = 'r' FROM pg_class WHERE oid = 'door_event'::regclass) AND (bound IS NULL OR bound < now() + interval '7 days') THEN
        EXECUTE format('ALTER TABLE door_event DROP CONSTRAINT IF EXISTS door_event_bound, ADD CONSTRAINT door_event_bound CHECK (at < %L) NOT VALID',
            date_bin('28 days', now() + interval '14 days', '2001-01-01 00:00+00') + interval '672 hours');
    END IF;
END $$;
-- +goose StatementEnd

CREATE TABLE IF NOT EXISTS door_event_rest (
    id         bigint      NOT NULL,
    branch_id  integer     NOT NULL,
    device     text        NOT NULL,
    kind       text        NOT NULL,
    at         timestamptz NOT NULL,
    request_id uuid,
    detail     jsonb       NOT NULL,
    PRIMARY KEY (branch_id, at, id)
);
-- +goose StatementBegin
DO $$
DECLARE
    bound timestamptz := (SELECT substring(pg_get_constraintdef(oid) FROM '''([^'']+)''')::timestamptz
        FROM pg_constraint WHERE conrelid = 'door_event'::regclass AND conname = 'door_event_bound');
BEGIN
    WITH back AS (DELETE FROM door_event_rest WHERE at < bound RETURNING *) -- of an attempt with an earlier bound
    INSERT INTO door_event OVERRIDING SYSTEM VALUE SELECT * FROM back;
    WITH stray AS (DELETE FROM door_event WHERE at >= bound RETURNING *)
    INSERT INTO door_event_rest SELECT * FROM stray;
END $$;
-- +goose StatementEnd

-- The scan blocks neither reads nor writes.
SET lock_timeout = 0;
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'door_event'::regclass AND conname = 'door_event_bound' AND NOT convalidated) THEN
        ALTER TABLE door_event VALIDATE CONSTRAINT door_event_bound;
    END IF;
END $$;
-- +goose StatementEnd
RESET lock_timeout;

-- The exchange takes some milliseconds. Partitions have no identity before PostgreSQL 17, so ids come from a sequence.
-- +goose StatementBegin
DO $$
DECLARE
    bound timestamptz;
    next_id bigint;
    given record;
BEGIN
    IF (SELECT relkind = 'p' FROM pg_class WHERE oid = 'door_event'::regclass) THEN
        RETURN;
    END IF;
    LOCK TABLE door_event IN ACCESS EXCLUSIVE MODE;
    bound := (SELECT substring(pg_get_constraintdef(oid) FROM '''([^'']+)''')::timestamptz
        FROM pg_constraint WHERE conrelid = 'door_event'::regclass AND conname = 'door_event_bound');
    next_id := nextval(pg_get_serial_sequence('door_event', 'id'));
    ALTER TABLE door_event RENAME TO door_event_first; -- contract: the new table has the name
    ALTER TABLE door_event_first ALTER COLUMN id DROP IDENTITY;
    ALTER TABLE door_event_first DROP CONSTRAINT door_event_pkey, ADD PRIMARY KEY USING INDEX door_event_first_pkey;
    ALTER INDEX door_event_by_time RENAME TO door_event_first_by_time; -- contract: no program names it
    DROP TRIGGER door_event_alert ON door_event_first;
    CREATE SEQUENCE door_event_id_seq;
    PERFORM setval('door_event_id_seq', next_id, false);
    CREATE TABLE door_event (
        id         bigint      NOT NULL DEFAULT nextval('door_event_id_seq'),
        branch_id  integer     NOT NULL,
        device     text        NOT NULL,
        kind       text        NOT NULL,
        at         timestamptz NOT NULL,
        request_id uuid,
        detail     jsonb       NOT NULL DEFAULT '{}',
        PRIMARY KEY (branch_id, at, id)
    ) PARTITION BY RANGE (at);
    ALTER SEQUENCE door_event_id_seq OWNED BY door_event.id;
    CREATE INDEX door_event_by_time ON door_event USING brin (at);
    EXECUTE format('ALTER TABLE door_event ATTACH PARTITION door_event_first FOR VALUES FROM (MINVALUE) TO (%L)', bound);
    ALTER TABLE door_event ATTACH PARTITION door_event_rest DEFAULT;
    ALTER TABLE door_event_first DROP CONSTRAINT door_event_bound;
    CREATE TRIGGER door_event_alert AFTER INSERT ON door_event FOR EACH ROW
        WHEN (NEW.kind IN ('forced', 'held', 'door-closed')) EXECUTE FUNCTION door_event_alert();
    CREATE TRIGGER door_event_kept BEFORE DELETE ON door_event FOR EACH ROW EXECUTE FUNCTION keep_young_row('door_event');
    PERFORM copy_rights('door_event_first', 'door_event'), copy_rights('door_event_first', 'door_event_rest');
    FOR given IN SELECT DISTINCT a.grantee::regrole AS role FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'door_event'::regclass AND a.grantee <> 0 LOOP
        EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE door_event_id_seq TO %s', given.role);
    END LOOP;
END $$;
-- +goose StatementEnd
