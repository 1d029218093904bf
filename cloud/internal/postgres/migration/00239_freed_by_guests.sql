-- +goose Up

-- As in 00120, but a stay that its guest cancels is kept in quarantine where an agent may hold another pass than the one of the stay as it
-- was: one of another stay, or one with an earlier window, which staff moved away from and whose PIN may be known. The extensions that end
-- with the stay need none either: the guest cancels it before the PIN is disclosed.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION quarantine_freed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    margin CONSTANT interval := (SELECT make_interval(mins => turnover_minutes) FROM room WHERE id = OLD.room_id);
    stay  CONSTANT bigint := coalesce(OLD.extends, OLD.id);
    start CONSTANT timestamptz := CASE WHEN OLD.extends IS NULL THEN OLD.start_at ELSE (SELECT r.start_at FROM reservation r WHERE r.id = stay) END;
    guest CONSTANT boolean := EXISTS (
        SELECT FROM refund f WHERE f.reservation_id = stay AND f.requested_by = 'customer' AND f.state <> 'REFUSED');
    freed tstzmultirange := tstzmultirange(tstzrange(OLD.start_at, OLD.end_at));
    part  tstzrange;
    until timestamptz;
BEGIN
    -- Beside reservations without a margin between them, the margin is left to the one that stays.
    SELECT freed - coalesce(range_agg(tstzrange(r.start_at - margin, coalesce(upper(r.occupied), r.end_at + margin))), '{}')
    INTO freed FROM reservation r
    WHERE r.room_id = OLD.room_id AND r.start_at < OLD.end_at + margin AND r.end_at > OLD.start_at - interval '1 hour'
      AND r.start_at > OLD.start_at - interval '6 hours'
      AND r.state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING');
    FOR part IN SELECT unnest(freed) LOOP
        SELECT max(l.not_after) INTO until FROM pass_listed l
        WHERE l.room_id = OLD.room_id AND l.not_after > lower(part) AND l.not_before < upper(part)
          AND NOT (guest AND undisclosed(l.pass_id, stay, start));
        CONTINUE WHEN until IS NULL;
        INSERT INTO reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, created_by, quarantine_of, reason)
        VALUES (OLD.branch_id, OLD.room_id, 'HOLD', 'ADMIN', lower(part), upper(part), part, until,
                'system:quarantine', OLD.id, CASE WHEN NEW.state = 'DONE' THEN 'moved' ELSE 'canceled' END);
    END LOOP;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Whether a pass is one of a stay that the guest frees before its start, at which its PIN is not disclosed yet: a guest cancels until
-- 30 minutes before the start, and the PIN is disclosed from then on. A key opens doors from two minutes before the start.
-- +goose StatementBegin
CREATE FUNCTION undisclosed(pass uuid, stay bigint, start timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM pass p WHERE p.id = $1 AND p.reservation_id = $2 AND p.not_before >= $3 - interval '2 minutes')
$$;
-- +goose StatementEnd

-- The reservation that a discrepancy is about: the one with its order id, or the one that it names because there is no order.
-- +goose StatementBegin
CREATE FUNCTION discrepancy_reservation(order_id text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN $1 ~ '^reservation-[0-9]{1,18}$' THEN substr($1, 13)::bigint
                ELSE (SELECT r.id FROM reservation r WHERE r.order_id = $1) END
$$;
-- +goose StatementEnd

-- As in 00227, with the branch of a reservation that has no order.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION discrepancy_alert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    code text := coalesce((SELECT b.code FROM reservation r JOIN branch b ON b.id = r.branch_id
                           WHERE r.id = discrepancy_reservation(NEW.order_id)), '');
BEGIN
    IF NEW.resolved_at IS NOT NULL THEN
        PERFORM alert_end('discrepancy', code, 'difference:' || NEW.id, clock_timestamp());
    ELSIF NEW.kind <> 'late-deposit' THEN
        PERFORM alert_open('discrepancy', code, 'difference:' || NEW.id, clock_timestamp());
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

UPDATE alert a SET branch = b.code
FROM reconciliation_difference d
JOIN reservation r ON r.id = discrepancy_reservation(d.order_id) JOIN branch b ON b.id = r.branch_id
WHERE d.order_id LIKE 'reservation-%' AND d.resolved_at IS NULL
  AND a.kind = 'discrepancy' AND a.branch = '' AND a.subject = 'difference:' || d.id AND a.ended_at IS NULL;
