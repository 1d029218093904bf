-- +goose NO TRANSACTION
-- +goose Up

-- When a refund that had failed was requested again; null: it has been requested once. An administrator may return the money by hand
-- once this request has been without an answer for long enough.
ALTER TABLE refund ADD COLUMN IF NOT EXISTS requested_at timestamptz;

-- The refunds whose transfer the bank has rejected and that an administrator has returned by hand are in the books twice: as refunded and as
-- returned by hand. A movement of its own takes the rejected won back.
ALTER TABLE money_entry DROP CONSTRAINT IF EXISTS money_entry_kind_check;
ALTER TABLE money_entry ADD CONSTRAINT money_entry_kind_check CHECK (kind IN ('paid', 'refunded', 'reversed', 'outside', 'rejected')) NOT VALID;
INSERT INTO money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
SELECT 'rejected:' || hand.id, hand.reservation_id, hand.branch_id, hand.order_id, 'rejected', p.rejected, hand.at
FROM payment p, LATERAL (
    SELECT * FROM money_entry e WHERE e.reservation_id = p.reservation_id AND e.kind = 'outside' ORDER BY e.id DESC LIMIT 1
) hand
WHERE p.rejected > 0 ON CONFLICT (source) DO NOTHING;

-- As in 00145, except for quarantines: a reservation can be canceled during a rebuild, and the time of its pass is kept from being sold.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION reservation_not_rebuilding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM rebuild WHERE ended_at IS NULL) AND current_setting('yeolda.rebuilding', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'reservations are being rebuilt' USING ERRCODE = 'YR001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER reservation_not_rebuilding BEFORE INSERT OR UPDATE OF room_id, start_at, end_at ON reservation
    FOR EACH ROW WHEN (NEW.quarantine_of IS NULL) EXECUTE FUNCTION reservation_not_rebuilding();

-- The reservations whose keys are blocked: their payments are looked up again.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS reservation_keys_blocked;
CREATE INDEX CONCURRENTLY reservation_keys_blocked ON reservation (id) WHERE keys_blocked;
RESET lock_timeout;
