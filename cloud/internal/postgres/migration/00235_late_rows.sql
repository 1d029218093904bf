-- +goose Up

-- Rows are linked into the audit log by their time. When the database's clock is set back, or a database whose clock is behind takes over,
-- new rows have times that are linked already. Until the clock has passed those times, rows get the end of them as late_at, by which they are
-- linked (postgres/auditlink.go). Otherwise it is null.
-- PL/pgSQL keeps the plan in the session: planned for each row, the default made an insert about five times as slow.
-- +goose StatementBegin
CREATE FUNCTION late_at(source text) RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    linked timestamptz;
BEGIN
    SELECT max(l.until) INTO linked FROM audit_link l WHERE l.source IN ($1, $1 || '-late');
    RETURN CASE WHEN linked > clock_timestamp() THEN linked END;
END
$$;
-- +goose StatementEnd

ALTER TABLE ledger ADD COLUMN late_at timestamptz;
ALTER TABLE ledger ALTER COLUMN late_at SET DEFAULT late_at('ledger');
ALTER TABLE money_entry ADD COLUMN late_at timestamptz;
ALTER TABLE money_entry ALTER COLUMN late_at SET DEFAULT late_at('money');
ALTER TABLE door_request ADD COLUMN late_at timestamptz;
ALTER TABLE door_request ALTER COLUMN late_at SET DEFAULT late_at('door');
ALTER TABLE pass_entry ADD COLUMN late_at timestamptz;
ALTER TABLE pass_entry ALTER COLUMN late_at SET DEFAULT late_at('entry');
