-- +goose Up

-- Tables that grow with time are partitioned by it, so that expired rows are dropped with their table instead of being deleted one by one.
-- The owner of the tables runs these functions also when the role of the service, which creates and drops no table, calls them.

-- partition_rules returns the partitioned tables: the span of a partition, and how long rows are kept. The column of the time is "at".
-- +goose StatementBegin
CREATE FUNCTION partition_rules() RETURNS TABLE (parent text, span interval, kept interval) LANGUAGE sql IMMUTABLE AS $$
    VALUES ('sensor_reading', interval '7 days', interval '90 days'),
           ('door_event', interval '28 days', interval '365 days')
$$;
-- +goose StatementEnd

-- Partitions. Rows of a time that no other partition contains are in the one that is "rest".
CREATE VIEW partition_list AS
SELECT r.parent, c.relname::text AS name, b.bound = 'DEFAULT' AS rest,
       CASE WHEN b.bound LIKE 'FOR VALUES FROM (MINVALUE)%' THEN '-infinity' ELSE substring(b.bound FROM 'FROM \(''([^'']+)''\)')::timestamptz END AS starts,
       substring(b.bound FROM 'TO \(''([^'']+)''\)')::timestamptz AS ends
FROM partition_rules() r
JOIN pg_class p ON p.relname = r.parent AND p.relnamespace = 'public'::regnamespace
JOIN pg_inherits i ON i.inhparent = p.oid
JOIN pg_class c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bound) b;

-- copy_rights gives the roles that have rights on a table the same rights on another one: a backup reads each partition.
-- +goose StatementBegin
CREATE FUNCTION copy_rights(of_table regclass, to_table regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    given record;
BEGIN
    FOR given IN SELECT a.grantee::regrole AS role, a.privilege_type AS kind FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = of_table AND a.grantee <> 0 LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.kind, to_table, given.role);
    END LOOP;
END $$;
-- +goose StatementEnd

-- partition_add creates the partition of a time and returns 'added'; 'exists' if there is one; 'full' if so many rows of its time are in
-- the rest that moving them would take long. Those stay there until they expire.
-- +goose StatementBegin
CREATE FUNCTION partition_add(of_table text, of_time timestamptz) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp SET timezone = 'UTC' SET lock_timeout = '100ms' AS $$
DECLARE
    movable CONSTANT bigint := 10000;
    width interval := (SELECT span FROM partition_rules() WHERE parent = of_table);
    first_time timestamptz := date_bin(width, of_time, '2001-01-01 00:00+00'); -- a Monday
    end_time timestamptz := first_time + width;
    new_table text := of_table || to_char(first_time, '"_"YYYYMMDD');
    rest_table text := of_table || '_rest';
    strays bigint;
BEGIN
    IF width IS NULL OR of_time > now() + interval '1 year' THEN
        RAISE 'no partition of % for %', of_table, of_time;
    END IF;
    EXECUTE format('LOCK TABLE ONLY %I IN SHARE UPDATE EXCLUSIVE MODE', of_table); -- one caller at a time; readers and writers continue
    IF EXISTS (SELECT FROM partition_list WHERE parent = of_table AND NOT rest AND starts < end_time AND ends > first_time) THEN
        RETURN 'exists';
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', rest_table);
    EXECUTE format('SELECT count(*) FROM (SELECT FROM %I WHERE at >= $1 AND at < $2 LIMIT $3) found', rest_table)
        INTO strays USING first_time, end_time, movable + 1;
    IF strays > movable THEN
        RETURN 'full';
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', new_table, of_table);
    IF strays > 0 THEN
        PERFORM set_config('yeolda.moves_rows', 'on', true);
        EXECUTE format('WITH stray AS (DELETE FROM %I WHERE at >= $1 AND at < $2 RETURNING *) INSERT INTO %I SELECT * FROM stray', rest_table, new_table)
            USING first_time, end_time;
        PERFORM set_config('yeolda.moves_rows', 'off', true);
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', of_table, new_table, first_time, end_time);
    PERFORM copy_rights(of_table::regclass, new_table::regclass);
    RETURN 'added';
END $$;
-- +goose StatementEnd

-- partition_drop drops one partition whose rows are all older than a time and have expired, and returns its name, or null.
-- +goose StatementBegin
CREATE FUNCTION partition_drop(of_table text, before timestamptz) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp SET timezone = 'UTC' SET lock_timeout = '100ms' AS $$
DECLARE
    expired text := (SELECT l.name FROM partition_list l JOIN partition_rules() r USING (parent)
        WHERE l.parent = of_table AND NOT l.rest AND l.ends <= least(before, now() - r.kept) ORDER BY l.ends LIMIT 1);
BEGIN
    IF expired IS NOT NULL THEN
        EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', of_table);
        EXECUTE format('DROP TABLE IF EXISTS %I', expired); -- contract: its rows have expired; unless another replica has dropped it meanwhile
    END IF;
    RETURN expired;
END $$;
-- +goose StatementEnd

-- keep_young_row keeps rows that have not expired. Programs of earlier releases delete expired rows by their place (ctid), which rows of
-- several partitions share. contract: remove the triggers when no such program can run any more.
-- +goose StatementBegin
CREATE FUNCTION keep_young_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.at > now() - (SELECT kept FROM partition_rules() WHERE parent = TG_ARGV[0])
        AND current_setting('yeolda.moves_rows', true) IS DISTINCT FROM 'on' THEN
        RETURN NULL;
    END IF;
    RETURN OLD;
END $$;
-- +goose StatementEnd
