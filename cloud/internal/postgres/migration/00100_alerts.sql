-- +goose Up

-- An alert is an incident from its beginning until its end was announced (closed_at). A condition that returns before then
-- is the same incident. Alerts of earlier releases are not announced any more.
ALTER TABLE alert
    ADD COLUMN acknowledged_at timestamptz,
    ADD COLUMN closed_at       timestamptz;
UPDATE alert SET notified_at = coalesce(notified_at, since), closed_at = ended_at;

-- Recipients of alerts, of a branch or of the head quarters (branch is empty): sealed JSON, because addresses of webhooks
-- are secrets.
CREATE TABLE alert_contact (
    branch   text  PRIMARY KEY,
    contacts bytea NOT NULL
);

-- What was announced to whom, at most once each. contact is a keyed hash of channel and address.
CREATE TABLE alert_notice (
    alert_id bigint      NOT NULL REFERENCES alert,
    contact  bytea       NOT NULL,
    began_at timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (alert_id, contact)
);

-- How a message to staff is sent; empty: by phone, otherwise by mail. The address of a webhook is among the sealed variables.
ALTER TABLE message ADD COLUMN medium text NOT NULL DEFAULT '';

-- When online changed last. An earlier release does not write it.
ALTER TABLE agent_inventory ADD COLUMN presence_since timestamptz;

-- alert_open opens an alert unless one is open.
-- +goose StatementBegin
CREATE FUNCTION alert_open(of_kind text, of_branch text, of_subject text, at timestamptz) RETURNS void LANGUAGE sql AS $$
    WITH again AS (
        UPDATE alert SET ended_at = NULL
        WHERE kind = of_kind AND branch = of_branch AND subject = of_subject AND ended_at IS NOT NULL AND closed_at IS NULL
          AND NOT EXISTS (SELECT FROM alert o WHERE o.kind = of_kind AND o.branch = of_branch AND o.subject = of_subject AND o.ended_at IS NULL)
        RETURNING id
    )
    INSERT INTO alert (kind, branch, subject, since)
    SELECT of_kind, of_branch, of_subject, at WHERE NOT EXISTS (SELECT FROM again)
    ON CONFLICT (kind, branch, subject) WHERE ended_at IS NULL DO NOTHING
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION alert_end(of_kind text, of_branch text, of_subject text, at timestamptz) RETURNS void LANGUAGE sql AS $$
    UPDATE alert SET ended_at = greatest(at, since)
    WHERE kind = of_kind AND branch = of_branch AND subject = of_subject AND ended_at IS NULL
$$;
-- +goose StatementEnd

-- The alerts below belong to rows of which there is more than one writer, so the rows raise them.

-- +goose StatementBegin
CREATE FUNCTION refund_alert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    code text := (SELECT b.code FROM reservation r JOIN branch b ON b.id = r.branch_id WHERE r.id = NEW.reservation_id);
BEGIN
    IF NEW.state = 'FAILED' THEN
        PERFORM alert_open('refund-failed', code, 'reservation:' || NEW.reservation_id, clock_timestamp());
    ELSE
        PERFORM alert_end('refund-failed', code, 'reservation:' || NEW.reservation_id, clock_timestamp());
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER refund_alert AFTER UPDATE OF state ON refund FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state AND 'FAILED' IN (OLD.state, NEW.state)) EXECUTE FUNCTION refund_alert();

-- +goose StatementBegin
CREATE FUNCTION discrepancy_alert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    code text := coalesce((SELECT b.code FROM reservation r JOIN branch b ON b.id = r.branch_id WHERE r.order_id = NEW.order_id), '');
BEGIN
    IF NEW.resolved_at IS NULL THEN
        PERFORM alert_open('discrepancy', code, 'difference:' || NEW.id, clock_timestamp());
    ELSE
        PERFORM alert_end('discrepancy', code, 'difference:' || NEW.id, clock_timestamp());
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER discrepancy_alert AFTER INSERT OR UPDATE OF resolved_at ON reconciliation_difference FOR EACH ROW EXECUTE FUNCTION discrepancy_alert();

-- +goose StatementBegin
CREATE FUNCTION door_event_alert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    code text := (SELECT b.code FROM branch b WHERE b.id = NEW.branch_id);
BEGIN
    IF NEW.kind = 'door-closed' THEN
        PERFORM alert_end('door-held', code, NEW.device, NEW.at);
    ELSE
        PERFORM alert_open('door-' || NEW.kind, code, NEW.device, NEW.at);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER door_event_alert AFTER INSERT ON door_event FOR EACH ROW
    WHEN (NEW.kind IN ('forced', 'held', 'door-closed')) EXECUTE FUNCTION door_event_alert();

-- +goose StatementBegin
CREATE FUNCTION self_test_alert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    code text := (SELECT b.code FROM branch b WHERE b.id = NEW.branch_id);
BEGIN
    PERFORM alert_open('self-test', code, test ->> 'name', NEW.seen_at)
    FROM jsonb_array_elements(NEW.self_test) test WHERE NOT (test ->> 'ok')::boolean;
    PERFORM alert_end('self-test', code, a.subject, NEW.seen_at) FROM alert a
    WHERE a.kind = 'self-test' AND a.branch = code AND a.ended_at IS NULL AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(NEW.self_test) test WHERE test ->> 'name' = a.subject AND NOT (test ->> 'ok')::boolean);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER self_test_alert AFTER INSERT OR UPDATE OF self_test ON agent_inventory FOR EACH ROW EXECUTE FUNCTION self_test_alert();
