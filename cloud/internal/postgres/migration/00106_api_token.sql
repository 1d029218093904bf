-- +goose Up

-- Tokens of programs. The token itself is 130 random bits, of which only the hash is kept.
CREATE TABLE api_token (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text        NOT NULL,
    token_hash   bytea       NOT NULL UNIQUE,   -- SHA-256
    scopes       text[]      NOT NULL CHECK (cardinality(scopes) > 0),
    branches     text[]      NOT NULL DEFAULT '{}',   -- codes; empty: all branches
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    expires_at   timestamptz
);

-- Requests with an Idempotency-Key. A row without an answer is a request in progress, or one whose outcome was lost with
-- the process: it is never repeated.
CREATE TABLE idempotent_request (
    principal    text        NOT NULL,
    key          text        NOT NULL,
    request_hash bytea       NOT NULL,          -- SHA-256 of method, address and body
    answer       bytea,                         -- status, headers and body, sealed
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (principal, key)
);
CREATE INDEX idempotent_request_by_age ON idempotent_request (created_at);
