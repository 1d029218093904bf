-- +goose Up

-- The events of a reservation follow its versions. A trigger that runs after the update of several rows may update one of them again
-- (reservation_stay_end), so an event that is written after the update can come after the event of a later version. The event of an
-- update is therefore written while its row is updated. The name sorts behind the triggers that set the columns.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION reservation_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    what text := lower(replace(NEW.state, '_', '-'));
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.state = OLD.state THEN
        what := CASE WHEN NEW.room_id <> OLD.room_id OR NEW.start_at <> OLD.start_at OR NEW.end_at <> OLD.end_at
                THEN 'moved' ELSE 'changed' END;
    END IF;
    INSERT INTO event (type, branch_id, subject, version)
    VALUES ('reservation.' || what, NEW.branch_id, 'reservation:' || NEW.id, NEW.version);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER reservation_event AFTER INSERT ON reservation FOR EACH ROW EXECUTE FUNCTION reservation_event();
CREATE TRIGGER reservation_version_event BEFORE UPDATE ON reservation FOR EACH ROW EXECUTE FUNCTION reservation_event();
