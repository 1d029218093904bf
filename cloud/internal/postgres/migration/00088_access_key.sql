-- +goose Up

-- The keys of a reservation. A key opens doors while it is not revoked and its reservation is DONE and not blocked. Its
-- text is stored sealed, to be shown and sent again, and found by its SHA-256.
CREATE TABLE access_key (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reservation_id bigint      NOT NULL REFERENCES reservation ON DELETE CASCADE,
    hash           bytea       NOT NULL UNIQUE,     -- SHA-256 of the text in lower case
    sealed         bytea,                           -- NULL: taken over from reservation.doorlock_key, see 00089
    kind           text        NOT NULL CHECK (kind IN ('owner', 'companion', 'staff')),
    label          text,                            -- of a companion
    created_by     text        NOT NULL,            -- system, customer, admin:<login id>
    created_at     timestamptz NOT NULL DEFAULT now(),
    revoked_at     timestamptz,
    revoked_as     text CHECK (revoked_as IN ('rotated', 'corrected', 'revoked', 'replaced')),
    CHECK ((revoked_at IS NULL) = (revoked_as IS NULL))
);
CREATE UNIQUE INDEX access_key_owner ON access_key (reservation_id) WHERE kind = 'owner' AND revoked_at IS NULL;
CREATE INDEX access_key_by_reservation ON access_key (reservation_id, id);
CREATE INDEX access_key_unsealed ON access_key (id) WHERE sealed IS NULL;

-- No key opens doors while the provider is asked whether the money is lost.
ALTER TABLE reservation ADD COLUMN keys_blocked boolean NOT NULL DEFAULT false;
-- The request revoked a key, which the provider's refusal restores.
ALTER TABLE refund ADD COLUMN key_revoked boolean NOT NULL DEFAULT false;

-- Programs of the last release read and write keys in plain text, in doorlock_key, blocked_key and revoked_key. They may
-- run beside this one during an upgrade and after a roll-back, so for a day an upgraded database keeps the plain text,
-- too. A new database never contains it. The next release drops the three columns and all that follows.
CREATE TABLE key_text (until timestamptz NOT NULL);
INSERT INTO key_text SELECT CASE WHEN EXISTS (SELECT FROM reservation) THEN now() + interval '1 day' ELSE now() END;

-- +goose StatementBegin
CREATE FUNCTION key_text(key uuid) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT key FROM key_text WHERE now() < until
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION reservation_key_written() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    digest bytea := sha256(convert_to(NEW.doorlock_key::text, 'UTF8'));
BEGIN
    IF NOT EXISTS (SELECT FROM access_key WHERE hash = digest) THEN
        UPDATE access_key SET revoked_at = clock_timestamp(), revoked_as = 'replaced'
        WHERE reservation_id = NEW.id AND revoked_at IS NULL;
        INSERT INTO access_key (reservation_id, hash, kind, created_by) VALUES (NEW.id, digest, 'owner', 'system');
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservation_key_written AFTER INSERT OR UPDATE OF doorlock_key ON reservation
    FOR EACH ROW WHEN (NEW.doorlock_key IS NOT NULL) EXECUTE FUNCTION reservation_key_written();

-- +goose StatementBegin
CREATE FUNCTION reservation_key_blocked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.keys_blocked := NEW.blocked_key IS NOT NULL;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservation_key_blocked BEFORE UPDATE OF blocked_key ON reservation
    FOR EACH ROW WHEN (NEW.blocked_key IS DISTINCT FROM OLD.blocked_key) EXECUTE FUNCTION reservation_key_blocked();

-- A pass ends with the owner's key, not with a change of the plain text.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION pass_follows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lead CONSTANT interval := '2 minutes'; -- booking.UnlockLead
BEGIN
    IF NEW.state = 'DONE' AND NEW.room_id = OLD.room_id AND NEW.start_at = OLD.start_at AND NEW.end_at <= OLD.end_at THEN
        UPDATE pass SET not_after = greatest(least(not_after, NEW.end_at - lead), not_before + interval '1 second'),
                        changed_at = clock_timestamp()
        WHERE reservation_id = NEW.id AND ended_at IS NULL;
    ELSE
        UPDATE pass SET ended_at = clock_timestamp(), changed_at = clock_timestamp()
        WHERE reservation_id = NEW.id AND ended_at IS NULL;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TRIGGER pass_follows ON reservation;
CREATE TRIGGER pass_follows AFTER UPDATE ON reservation FOR EACH ROW
WHEN (OLD.state = 'DONE' AND (OLD.state, OLD.room_id, OLD.start_at, OLD.end_at)
      IS DISTINCT FROM (NEW.state, NEW.room_id, NEW.start_at, NEW.end_at))
EXECUTE FUNCTION pass_follows();

-- +goose StatementBegin
CREATE FUNCTION pass_follows_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pass SET ended_at = clock_timestamp(), changed_at = clock_timestamp()
    WHERE reservation_id = NEW.reservation_id AND ended_at IS NULL;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER pass_follows_key AFTER UPDATE ON access_key FOR EACH ROW
WHEN (NEW.kind = 'owner' AND NEW.revoked_at IS NOT NULL AND OLD.revoked_at IS NULL)
EXECUTE FUNCTION pass_follows_key();
