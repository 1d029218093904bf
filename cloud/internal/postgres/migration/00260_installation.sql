-- +goose Up

-- The keys that this database was written with. sealed is a constant that only the encryption key opens; grant_keys are the public keys
-- that every agent without a key list (epoch 0) accepts.
CREATE TABLE installation (
    single     boolean PRIMARY KEY DEFAULT true CHECK (single),
    sealed     bytea       NOT NULL,
    grant_keys text[]      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
