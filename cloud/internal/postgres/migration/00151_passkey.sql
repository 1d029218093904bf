-- +goose Up

-- Passkeys of administrators (Web Authentication).
CREATE TABLE passkey (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    administrator_id integer     NOT NULL REFERENCES administrator ON DELETE CASCADE,
    credential_id    bytea       NOT NULL UNIQUE,
    credential       jsonb       NOT NULL,   -- public key, counter and flags
    name             text        NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    last_used_at     timestamptz
);
CREATE INDEX passkey_by_administrator ON passkey (administrator_id);

-- Challenges that a browser may answer, once each.
CREATE TABLE passkey_ceremony (
    challenge_hash bytea       PRIMARY KEY,  -- SHA-256
    session        jsonb       NOT NULL,
    expires_at     timestamptz NOT NULL
);
