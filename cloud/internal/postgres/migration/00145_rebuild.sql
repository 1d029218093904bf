-- +goose Up

-- The rebuilds after a backup was restored: until one has ended, the reservations that the backup lacks are not known.
CREATE TABLE rebuild (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    begun_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz
);
CREATE UNIQUE INDEX rebuild_open ON rebuild ((true)) WHERE ended_at IS NULL;

-- While a rebuild is open, no time is taken, except by the rebuild itself: it could be one that a lost reservation has.
-- +goose StatementBegin
CREATE FUNCTION reservation_not_rebuilding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM rebuild WHERE ended_at IS NULL) AND current_setting('yeolda.rebuilding', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'reservations are being rebuilt' USING ERRCODE = 'YR001';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservation_not_rebuilding BEFORE INSERT OR UPDATE OF room_id, start_at, end_at ON reservation
    FOR EACH STATEMENT EXECUTE FUNCTION reservation_not_rebuilding();
