-- +goose Up

-- The transaction that last changed a reservation. An answer from memory is current while none that its snapshot does not show
-- has changed a reservation of the branch. The default is one constant for all present rows, so no table is rewritten.
ALTER TABLE reservation ADD COLUMN changed xid8 NOT NULL DEFAULT pg_current_xact_id();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION reservation_touched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := clock_timestamp();
    NEW.changed := pg_current_xact_id();
    RETURN NEW;
END $$;
-- +goose StatementEnd
