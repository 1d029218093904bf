-- +goose Up

-- As in 00086, but a stay without a pass ends with its extensions: a code is given until then.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION give_pass_code(d door_request, at timestamptz) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
    lead CONSTANT interval := '2 minutes'; -- booking.UnlockLead
BEGIN
    IF d.state NOT IN ('FAILED', 'UNKNOWN') OR d.reservation_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM reservation r JOIN room m ON m.id = r.room_id LEFT JOIN pass p ON p.reservation_id = r.id AND p.ended_at IS NULL
        WHERE r.id = d.reservation_id AND r.state = 'DONE' AND NOT r.keys_blocked AND r.branch_id + 0 = d.branch_id
          AND coalesce(p.not_before, r.start_at - lead) <= at AND at < coalesce(p.not_after, r.stay_end - lead, r.end_at - lead)
          AND (d.kind = 'front' OR d.device = 'room_' || m.no)) THEN
        RETURN NULL;
    END IF;
    RETURN pick_pass_code(d.branch_id, d.device, d.reservation_id, d.id, at);
END $$;
-- +goose StatementEnd
