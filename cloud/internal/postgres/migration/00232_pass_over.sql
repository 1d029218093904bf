-- +goose Up

-- A pass that is over keeps its window: the audit log vouches for it (postgres/auditlink.go). If its stay is shortened afterwards, by the
-- refund of an extension or a correction of the record, the pass ends instead.
-- +goose StatementBegin
CREATE FUNCTION pass_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.not_after <= clock_timestamp() THEN
        NEW.not_after := OLD.not_after;
        NEW.ended_at := coalesce(NEW.ended_at, clock_timestamp());
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER pass_over BEFORE UPDATE OF not_after ON pass
    FOR EACH ROW WHEN (NEW.not_after < OLD.not_after) EXECUTE FUNCTION pass_over();
