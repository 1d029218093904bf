-- +goose Up

-- The nightly proofs: what each rule found in the rows of one snapshot, as the signed document.
CREATE TABLE proof (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    violations integer     NOT NULL,
    document   text        NOT NULL
);
CREATE INDEX proof_by_age ON proof (at);
