-- +goose Up

-- A pass is a PIN of one reservation that the branch's agent checks by itself, so that it works without the uplink.
-- A reservation has at most one live pass. The PIN is sealed by the service.
CREATE TABLE pass (
    id             uuid        PRIMARY KEY,
    reservation_id bigint      NOT NULL REFERENCES reservation,
    branch_id      integer     NOT NULL REFERENCES branch,
    room_id        integer     NOT NULL REFERENCES room,
    pin            bytea       NOT NULL,
    not_before     timestamptz NOT NULL,
    not_after      timestamptz NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at       timestamptz,
    CHECK (not_before < not_after)
);
CREATE UNIQUE INDEX pass_live ON pass (reservation_id) WHERE ended_at IS NULL;
CREATE INDEX pass_by_reservation ON pass (reservation_id, created_at);
CREATE INDEX pass_by_window ON pass (branch_id, not_after);
CREATE INDEX pass_by_change ON pass (changed_at);

-- The passes in lists that were sent to agents: an agent may act on each of them until it acknowledges a newer list.
CREATE TABLE pass_listed (
    username   text        NOT NULL REFERENCES agent_credential,
    epoch      bigint      NOT NULL,
    version    bigint      NOT NULL,
    pass_id    uuid        NOT NULL,
    room_id    integer     NOT NULL,
    not_before timestamptz NOT NULL,
    not_after  timestamptz NOT NULL,
    PRIMARY KEY (username, epoch, version, pass_id)
);
CREATE INDEX pass_listed_by_room ON pass_listed (room_id, not_after);

-- A quarantine is a hold of the slot of another reservation, quarantine_of, that was cancelled or moved while an agent may
-- hold its pass: it is under the exclusion constraint of all reservations, and expires with the pass.
ALTER TABLE reservation ADD COLUMN quarantine_of bigint;

-- Which keypad a door has: device (front_1, room_2) -> agent | none. A door that is not named has a standalone one.
ALTER TABLE branch ADD COLUMN keypads jsonb NOT NULL DEFAULT '{}';

-- A pass ends in the statement that ends the right it stands for, whichever program executes it: the reservation is no
-- longer confirmed, has another room or time, or another key. A stay that only ends earlier keeps its pass, shortened.
-- +goose StatementBegin
CREATE FUNCTION pass_follows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lead CONSTANT interval := '2 minutes'; -- booking.UnlockLead
BEGIN
    IF NEW.state = 'DONE' AND NEW.room_id = OLD.room_id AND NEW.start_at = OLD.start_at AND NEW.end_at <= OLD.end_at
       AND coalesce(NEW.doorlock_key, NEW.blocked_key) IS NOT DISTINCT FROM coalesce(OLD.doorlock_key, OLD.blocked_key) THEN
        UPDATE pass SET not_after = greatest(least(not_after, NEW.end_at - lead), not_before + interval '1 second'),
                        changed_at = clock_timestamp()
        WHERE reservation_id = NEW.id AND ended_at IS NULL;
    ELSE
        UPDATE pass SET ended_at = clock_timestamp(), changed_at = clock_timestamp()
        WHERE reservation_id = NEW.id AND ended_at IS NULL;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER pass_follows AFTER UPDATE ON reservation FOR EACH ROW
WHEN (OLD.state = 'DONE' AND (OLD.state, OLD.room_id, OLD.start_at, OLD.end_at, OLD.doorlock_key)
      IS DISTINCT FROM (NEW.state, NEW.room_id, NEW.start_at, NEW.end_at, NEW.doorlock_key))
EXECUTE FUNCTION pass_follows();

-- Time of a room that becomes free while an agent may hold a pass for it stays blocked, until the agent acknowledges a
-- newer list or the pass ends. A guest's own cancellation is before the disclosure of the PIN, so it blocks nothing.
-- +goose StatementBegin
CREATE FUNCTION quarantine_freed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    margin CONSTANT interval := '10 minutes'; -- booking.Margin
    -- As in the exclusion constraint.
    occupies CONSTANT boolean := NEW.state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
        AND NEW.room_id = OLD.room_id;
    freed tstzmultirange := tstzmultirange(tstzrange(OLD.start_at, OLD.end_at));
    part  tstzrange;
    opens timestamptz;
    shuts timestamptz;
    until timestamptz;
BEGIN
    IF EXISTS (SELECT FROM refund f WHERE f.reservation_id = OLD.id AND f.requested_by = 'customer' AND f.state <> 'REFUSED') THEN
        RETURN NULL;
    END IF;
    IF occupies THEN
        freed := freed - tstzmultirange(tstzrange(NEW.start_at - margin, NEW.end_at + margin));
    END IF;
    FOR part IN SELECT unnest(freed) LOOP
        SELECT max(l.not_after) INTO until FROM pass_listed l
        WHERE l.room_id = OLD.room_id AND l.not_after > lower(part) AND l.not_before < upper(part);
        CONTINUE WHEN until IS NULL;
        -- Beside reservations without a margin between them, the margin is left to the one that stays.
        SELECT greatest(lower(part), max(r.end_at) + margin) INTO opens FROM reservation r
        WHERE r.room_id = OLD.room_id AND r.end_at > lower(part) - margin AND r.end_at <= lower(part)
          AND r.start_at > lower(part) - interval '6 hours' AND r.id <> OLD.id
          AND r.state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING');
        SELECT least(upper(part), min(r.start_at) - margin) INTO shuts FROM reservation r
        WHERE r.room_id = OLD.room_id AND r.start_at >= upper(part) AND r.start_at < upper(part) + margin AND r.id <> OLD.id
          AND r.state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING');
        CONTINUE WHEN opens >= shuts;
        INSERT INTO reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, created_by, quarantine_of, reason)
        VALUES (OLD.branch_id, OLD.room_id, 'HOLD', 'ADMIN', opens, shuts, tstzrange(opens, shuts + margin), until,
                'system:quarantine', OLD.id, CASE WHEN NEW.state = 'DONE' THEN 'moved' ELSE 'canceled' END);
    END LOOP;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER quarantine_freed AFTER UPDATE ON reservation FOR EACH ROW
WHEN (OLD.state IN ('WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
      AND ((OLD.room_id, OLD.start_at, OLD.end_at) IS DISTINCT FROM (NEW.room_id, NEW.start_at, NEW.end_at)
           OR NEW.state NOT IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')))
EXECUTE FUNCTION quarantine_freed();
