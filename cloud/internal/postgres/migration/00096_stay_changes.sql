-- +goose Up

-- An extension of a stay is a reservation of its own, [end of the stay, new end), with its own order and payment. extends is
-- the reservation with the guest's key, the root of the chain. An exchange is a new reservation: its confirmation refunds
-- the one that it replaces.
ALTER TABLE reservation ADD COLUMN extends bigint;
ALTER TABLE reservation ADD COLUMN replaces bigint;
ALTER TABLE reservation ADD CONSTRAINT reservation_extends FOREIGN KEY (extends) REFERENCES reservation NOT VALID;
ALTER TABLE reservation ADD CONSTRAINT reservation_replaces FOREIGN KEY (replaces) REFERENCES reservation NOT VALID;

-- The account to which the refund of the replaced reservation goes, sealed.
ALTER TABLE reservation ADD COLUMN replaced_account bytea;

-- The end of the confirmed extensions that follow the reservation without a gap; NULL: end_at. Doors open until then.
ALTER TABLE reservation ADD COLUMN stay_end timestamptz;

-- An extension leaves its first ten minutes to the margin of the reservation that it follows, so the rows of a stay lie
-- side by side under the exclusion constraint. The margin is given up while the extension is live, and back when its row
-- leaves the constraint, without a change of another row.
ALTER TABLE reservation DROP CONSTRAINT reservation_check1;
ALTER TABLE reservation ADD CONSTRAINT reservation_occupied CHECK (upper(occupied) = end_at + interval '10 minutes'
    AND lower(occupied) = start_at + CASE WHEN extends IS NULL THEN interval '0' ELSE interval '10 minutes' END) NOT VALID;

-- +goose StatementBegin
CREATE FUNCTION reservation_stay_end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lead CONSTANT interval := '2 minutes'; -- booking.UnlockLead
    until timestamptz;
BEGIN
    WITH RECURSIVE stay AS (
        SELECT id, room_id, end_at FROM reservation WHERE id = NEW.extends
        UNION ALL
        SELECT stay.id, stay.room_id, e.end_at FROM stay JOIN reservation e
          ON e.extends = stay.id AND e.start_at = stay.end_at AND e.room_id = stay.room_id AND e.state = 'DONE'
         AND NOT e.keys_blocked
    ) SELECT max(end_at) INTO until FROM stay;
    UPDATE reservation SET stay_end = nullif(until, end_at) WHERE id = NEW.extends;
    -- The pass never lasts longer than the stay; the service lengthens it (postgres.ExtendPass).
    UPDATE pass SET not_after = greatest(until - lead, not_before + interval '1 second'), changed_at = clock_timestamp()
    WHERE reservation_id = NEW.extends AND ended_at IS NULL AND not_after > until - lead;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- Holds that come and go change no stay.
CREATE TRIGGER reservation_stay_end AFTER UPDATE OF state, start_at, end_at, room_id, keys_blocked ON reservation
    FOR EACH ROW WHEN (NEW.extends IS NOT NULL AND (OLD.state = 'DONE' OR NEW.state = 'DONE'))
    EXECUTE FUNCTION reservation_stay_end();

-- As in 00084, with two differences: the PIN of a stay that has begun is disclosed, so a guest's cancellation of an extension
-- blocks its time, too; and time that another reservation of the stay has moved into is not free.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION quarantine_freed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    margin CONSTANT interval := '10 minutes'; -- booking.Margin
    freed tstzmultirange := tstzmultirange(tstzrange(OLD.start_at, OLD.end_at));
    part  tstzrange;
    until timestamptz;
BEGIN
    IF OLD.extends IS NULL AND EXISTS (
        SELECT FROM refund f WHERE f.reservation_id = OLD.id AND f.requested_by = 'customer' AND f.state <> 'REFUSED') THEN
        RETURN NULL;
    END IF;
    -- Beside reservations without a margin between them, the margin is left to the one that stays.
    SELECT freed - coalesce(range_agg(tstzrange(r.start_at - margin, r.end_at + margin)), '{}') INTO freed FROM reservation r
    WHERE r.room_id = OLD.room_id AND r.start_at < OLD.end_at + margin AND r.end_at > OLD.start_at - margin
      AND r.start_at > OLD.start_at - interval '6 hours'
      AND r.state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING');
    FOR part IN SELECT unnest(freed) LOOP
        SELECT max(l.not_after) INTO until FROM pass_listed l
        WHERE l.room_id = OLD.room_id AND l.not_after > lower(part) AND l.not_before < upper(part);
        CONTINUE WHEN until IS NULL;
        INSERT INTO reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, created_by, quarantine_of, reason)
        VALUES (OLD.branch_id, OLD.room_id, 'HOLD', 'ADMIN', lower(part), upper(part), tstzrange(lower(part), upper(part) + margin), until,
                'system:quarantine', OLD.id, CASE WHEN NEW.state = 'DONE' THEN 'moved' ELSE 'canceled' END);
    END LOOP;
    RETURN NULL;
END $$;
-- +goose StatementEnd
