-- +goose Up

-- The stream of changes for other programs. Row triggers write it, so no writer can forget an event. Rows are inserted
-- concurrently; one writer at a time gives them their place in the stream after their commit (postgres/event.go), so a
-- reader that has seen a place never misses an event of a transaction that committed late.
CREATE TABLE event (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    place     bigint UNIQUE,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    type      text        NOT NULL,
    branch_id integer,
    subject   text        NOT NULL,             -- reservation:<id>, door-request:<id>, refund:<id>, alert:<id>, branch:<code>
    version   bigint      NOT NULL              -- of the subject: 1, 2, 3, ...
);
CREATE INDEX event_unplaced ON event (id) WHERE place IS NULL;
CREATE INDEX event_by_age ON event (at);

-- The last place of the stream. Its lock orders the writers of places.
CREATE TABLE event_head (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    place    bigint  NOT NULL DEFAULT 0
);
INSERT INTO event_head DEFAULT VALUES;

ALTER TABLE door_request ADD COLUMN version integer NOT NULL DEFAULT 1;
ALTER TABLE refund       ADD COLUMN version integer NOT NULL DEFAULT 1;
ALTER TABLE alert        ADD COLUMN version integer NOT NULL DEFAULT 1;

-- +goose StatementBegin
CREATE FUNCTION next_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER door_request_version BEFORE UPDATE ON door_request FOR EACH ROW EXECUTE FUNCTION next_version();
CREATE TRIGGER refund_version       BEFORE UPDATE ON refund       FOR EACH ROW EXECUTE FUNCTION next_version();
CREATE TRIGGER alert_version        BEFORE UPDATE ON alert        FOR EACH ROW EXECUTE FUNCTION next_version();

-- A reservation's event names its state when that changed, and otherwise whether room or time did.
-- +goose StatementBegin
CREATE FUNCTION reservation_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    what text := lower(replace(NEW.state, '_', '-'));
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.state = OLD.state THEN
        what := CASE WHEN NEW.room_id <> OLD.room_id OR NEW.start_at <> OLD.start_at OR NEW.end_at <> OLD.end_at
                THEN 'moved' ELSE 'changed' END;
    END IF;
    INSERT INTO event (type, branch_id, subject, version)
    VALUES ('reservation.' || what, NEW.branch_id, 'reservation:' || NEW.id, NEW.version);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservation_event AFTER INSERT OR UPDATE ON reservation FOR EACH ROW EXECUTE FUNCTION reservation_event();

-- +goose StatementBegin
CREATE FUNCTION door_request_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO event (type, branch_id, subject, version)
    VALUES ('door-request.' || lower(NEW.state), NEW.branch_id, 'door-request:' || NEW.id, NEW.version);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER door_request_event AFTER INSERT OR UPDATE ON door_request FOR EACH ROW EXECUTE FUNCTION door_request_event();

-- +goose StatementBegin
CREATE FUNCTION refund_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO event (type, branch_id, subject, version)
    SELECT 'refund.' || lower(NEW.state), r.branch_id, 'refund:' || NEW.id, NEW.version
    FROM reservation r WHERE r.id = NEW.reservation_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER refund_event AFTER INSERT OR UPDATE ON refund FOR EACH ROW EXECUTE FUNCTION refund_event();

-- +goose StatementBegin
CREATE FUNCTION alert_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    what text := 'changed';
BEGIN
    IF TG_OP = 'INSERT' THEN
        what := 'opened';
    ELSIF NEW.ended_at IS NOT NULL AND OLD.ended_at IS NULL THEN
        what := 'ended';
    ELSIF NEW.acknowledged_by IS NOT NULL AND OLD.acknowledged_by IS NULL THEN
        what := 'acknowledged';
    END IF;
    INSERT INTO event (type, branch_id, subject, version)
    VALUES ('alert.' || what, (SELECT id FROM branch WHERE code = NEW.branch), 'alert:' || NEW.id, NEW.version);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER alert_event AFTER INSERT OR UPDATE ON alert FOR EACH ROW EXECUTE FUNCTION alert_event();

-- A change of a room increases the revision of its branch, so it is an event of the branch.
-- +goose StatementBegin
CREATE FUNCTION branch_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO event (type, branch_id, subject, version)
    VALUES (CASE TG_OP WHEN 'INSERT' THEN 'branch.created' ELSE 'branch.changed' END, NEW.id, 'branch:' || NEW.code, NEW.revision);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER branch_event AFTER INSERT OR UPDATE ON branch FOR EACH ROW EXECUTE FUNCTION branch_event();
