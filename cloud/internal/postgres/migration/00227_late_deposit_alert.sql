-- +goose Up

-- As in 00100, without an alert about money that arrived late: it is refunded without help, within seconds as a rule. A refund that
-- fails, is declined or takes too long has a discrepancy and an alert of its own.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION discrepancy_alert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    code text := coalesce((SELECT b.code FROM reservation r JOIN branch b ON b.id = r.branch_id WHERE r.order_id = NEW.order_id), '');
BEGIN
    IF NEW.resolved_at IS NOT NULL THEN
        PERFORM alert_end('discrepancy', code, 'difference:' || NEW.id, clock_timestamp());
    ELSIF NEW.kind <> 'late-deposit' THEN
        PERFORM alert_open('discrepancy', code, 'difference:' || NEW.id, clock_timestamp());
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
