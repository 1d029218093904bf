-- +goose Up

-- Since when the agent of a branch has been lost, apart from presences of less than a minute: one that crashes again and again, or whose router
-- restarts, is never away for the two minutes of the alert. After a longer presence the next loss begins anew.
ALTER TABLE agent_inventory ADD COLUMN lost_since timestamptz;

-- +goose StatementBegin
CREATE FUNCTION agent_lost() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.lost_since IS NULL OR NEW.presence_since >= OLD.presence_since + interval '1 minute' THEN
        NEW.lost_since := NEW.presence_since;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TRIGGER agent_lost BEFORE UPDATE OF online ON agent_inventory FOR EACH ROW
    WHEN (OLD.online AND NOT NEW.online) EXECUTE FUNCTION agent_lost();
