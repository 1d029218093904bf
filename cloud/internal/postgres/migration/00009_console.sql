-- +goose Up

-- What an agent found out about itself, and by how much its clock is ahead of ours.
ALTER TABLE agent_inventory ADD COLUMN self_test jsonb NOT NULL DEFAULT '[]';
ALTER TABLE agent_inventory ADD COLUMN clock_offset_ms bigint;

-- The audit log becomes a chain in a moment after the entries' commit, by one writer: an entry's place is not its id,
-- because ids are given out before commits. After that nothing about it may change.
ALTER TABLE audit ADD COLUMN place bigint UNIQUE;
CREATE INDEX audit_unchained ON audit (id) WHERE place IS NULL;
CREATE INDEX audit_by_actor ON audit (actor, id);

-- +goose StatementBegin
CREATE FUNCTION audit_chained_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.place IS NOT NULL
        OR (NEW.id, NEW.at, NEW.actor, NEW.branch_id, NEW.action, NEW.target, NEW.detail, NEW.address, NEW.request_id)
            IS DISTINCT FROM (OLD.id, OLD.at, OLD.actor, OLD.branch_id, OLD.action, OLD.target, OLD.detail, OLD.address, OLD.request_id)
    THEN
        RAISE EXCEPTION 'audit is append-only';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_chained_once BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION audit_chained_once();

-- A second step that is being set up, and the last time step used: a code works once.
ALTER TABLE administrator ADD COLUMN totp_pending bytea;
ALTER TABLE administrator ADD COLUMN totp_step bigint NOT NULL DEFAULT 0;

-- Names and contacts are taken away when their time is over.
ALTER TABLE reservation ADD COLUMN anonymised_at timestamptz;
CREATE INDEX reservation_to_anonymise ON reservation (end_at) WHERE anonymised_at IS NULL;
