-- +goose Up
CREATE EXTENSION IF NOT EXISTS btree_gist;

-- A branch and its rooms. revision grows with every change of either, so that a cached copy can be
-- checked in the same round trip that reads reservations.
CREATE TABLE branch (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    code         text    NOT NULL UNIQUE CHECK (code ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
    name_ko      text    NOT NULL DEFAULT '',
    name_en      text    NOT NULL DEFAULT '',
    address      text    NOT NULL DEFAULT '',
    phone        text    NOT NULL DEFAULT '',
    time_zone    text    NOT NULL DEFAULT 'Asia/Seoul',
    horizon_days integer NOT NULL DEFAULT 60 CHECK (horizon_days BETWEEN 1 AND 366),
    front_doors  text[]  NOT NULL DEFAULT '{front_1}' CHECK (cardinality(front_doors) BETWEEN 1 AND 16),
    schedule     jsonb   NOT NULL DEFAULT '{}',
    demo         boolean NOT NULL DEFAULT false,
    revision     bigint  NOT NULL DEFAULT 1
);

CREATE TABLE room (
    id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    branch_id integer NOT NULL REFERENCES branch,
    no        integer NOT NULL CHECK (no BETWEEN 1 AND 9999),
    machine   text    NOT NULL DEFAULT '',
    grade     text    NOT NULL DEFAULT '',
    enabled   boolean NOT NULL DEFAULT true,
    min10     integer CHECK (min10 > 0),
    min30     integer CHECK (min30 > 0),
    min60     integer CHECK (min60 > 0),
    UNIQUE (branch_id, no)
);

-- +goose StatementBegin
CREATE FUNCTION branch_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.revision := OLD.revision + 1;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER branch_changed BEFORE UPDATE ON branch FOR EACH ROW EXECUTE FUNCTION branch_changed();

-- +goose StatementBegin
CREATE FUNCTION room_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE branch SET revision = revision WHERE id = COALESCE(NEW.branch_id, OLD.branch_id);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER room_changed AFTER INSERT OR UPDATE OR DELETE ON room FOR EACH ROW EXECUTE FUNCTION room_changed();

-- The PIN of a door's keypad, sealed by the service (see internal/seal). device 'front' is the PIN of
-- all front doors, 'room_<n>' that of a room.
CREATE TABLE door_pin (
    branch_id   integer     NOT NULL REFERENCES branch,
    device      text        NOT NULL,
    pin         bytea       NOT NULL,
    rotated_at  timestamptz NOT NULL DEFAULT now(),
    revealed_at timestamptz,
    PRIMARY KEY (branch_id, device)
);
