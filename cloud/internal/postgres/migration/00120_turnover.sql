-- +goose Up

-- How long a room stays empty after a reservation. A reservation keeps the value under which it occupies its room; every
-- live one that has not ended has the value of its room (postgres.SetTurnover).
ALTER TABLE room        ADD COLUMN turnover_minutes smallint NOT NULL DEFAULT 10 CHECK (turnover_minutes BETWEEN 10 AND 60);
ALTER TABLE reservation ADD COLUMN turnover_minutes smallint NOT NULL DEFAULT 10;

ALTER TABLE reservation DROP CONSTRAINT reservation_occupied;
ALTER TABLE reservation ADD CONSTRAINT reservation_turnover CHECK (
    upper(occupied) = end_at + make_interval(mins => turnover_minutes)
    AND lower(occupied) = start_at + make_interval(mins => CASE WHEN extends IS NULL THEN 0 ELSE turnover_minutes END)) NOT VALID;

-- The time for which a reservation occupies a room. An extension leaves the margin after the reservation that it follows.
CREATE FUNCTION room_occupied(minutes integer, extension boolean, from_at timestamptz, until timestamptz) RETURNS tstzrange
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT tstzrange(from_at + make_interval(mins => CASE WHEN extension THEN minutes ELSE 0 END), until + make_interval(mins => minutes))
$$;

-- Every writer of a reservation gets the margin of the room here, so none can forget it. A range that is empty stays empty:
-- the rows of a stay are moved in two steps (postgres.MoveStay).
-- +goose StatementBegin
CREATE FUNCTION reservation_turnover() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF isempty(NEW.occupied) THEN
        RETURN NEW;
    END IF;
    NEW.turnover_minutes := (SELECT turnover_minutes FROM room WHERE id = NEW.room_id);
    NEW.occupied := room_occupied(NEW.turnover_minutes, NEW.extends IS NOT NULL, NEW.start_at, NEW.end_at);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservation_turnover_new BEFORE INSERT ON reservation FOR EACH ROW EXECUTE FUNCTION reservation_turnover();
CREATE TRIGGER reservation_turnover BEFORE UPDATE ON reservation FOR EACH ROW
WHEN ((OLD.room_id, OLD.start_at, OLD.end_at, OLD.occupied) IS DISTINCT FROM (NEW.room_id, NEW.start_at, NEW.end_at, NEW.occupied)
      OR OLD.state NOT IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
      AND NEW.state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING'))
EXECUTE FUNCTION reservation_turnover();

-- As in 00096, with the margin of the room.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION quarantine_freed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    margin CONSTANT interval := (SELECT make_interval(mins => turnover_minutes) FROM room WHERE id = OLD.room_id);
    freed tstzmultirange := tstzmultirange(tstzrange(OLD.start_at, OLD.end_at));
    part  tstzrange;
    until timestamptz;
BEGIN
    IF OLD.extends IS NULL AND EXISTS (
        SELECT FROM refund f WHERE f.reservation_id = OLD.id AND f.requested_by = 'customer' AND f.state <> 'REFUSED') THEN
        RETURN NULL;
    END IF;
    -- Beside reservations without a margin between them, the margin is left to the one that stays.
    SELECT freed - coalesce(range_agg(tstzrange(r.start_at - margin, coalesce(upper(r.occupied), r.end_at + margin))), '{}')
    INTO freed FROM reservation r
    WHERE r.room_id = OLD.room_id AND r.start_at < OLD.end_at + margin AND r.end_at > OLD.start_at - interval '1 hour'
      AND r.start_at > OLD.start_at - interval '6 hours'
      AND r.state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING');
    FOR part IN SELECT unnest(freed) LOOP
        SELECT max(l.not_after) INTO until FROM pass_listed l
        WHERE l.room_id = OLD.room_id AND l.not_after > lower(part) AND l.not_before < upper(part);
        CONTINUE WHEN until IS NULL;
        INSERT INTO reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, created_by, quarantine_of, reason)
        VALUES (OLD.branch_id, OLD.room_id, 'HOLD', 'ADMIN', lower(part), upper(part), part, until,
                'system:quarantine', OLD.id, CASE WHEN NEW.state = 'DONE' THEN 'moved' ELSE 'canceled' END);
    END LOOP;
    RETURN NULL;
END $$;
-- +goose StatementEnd
