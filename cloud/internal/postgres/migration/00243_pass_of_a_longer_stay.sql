-- +goose Up

-- As in 00088, but a stay that only ends later keeps its pass as it is, and the service lengthens it with the same PIN
-- (postgres.ExtendPass). A guest who stands at a door that failed, and gets more time for it, has the PIN from the message before.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION pass_follows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lead CONSTANT interval := '2 minutes'; -- booking.UnlockLead
BEGIN
    IF NEW.state <> 'DONE' OR NEW.room_id <> OLD.room_id OR NEW.start_at <> OLD.start_at THEN
        UPDATE pass SET ended_at = clock_timestamp(), changed_at = clock_timestamp()
        WHERE reservation_id = NEW.id AND ended_at IS NULL;
    ELSIF NEW.end_at < OLD.end_at THEN
        UPDATE pass SET not_after = greatest(least(not_after, NEW.end_at - lead), not_before + interval '1 second'),
                        changed_at = clock_timestamp()
        WHERE reservation_id = NEW.id AND ended_at IS NULL;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
