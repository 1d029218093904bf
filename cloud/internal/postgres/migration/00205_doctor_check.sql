-- +goose Up

-- The last result of each check that the service makes of its installation every hour; since is when the state changed last.
CREATE TABLE doctor_check (
    name  text        PRIMARY KEY,
    state text        NOT NULL CHECK (state IN ('ok', 'warn', 'fail')),
    since timestamptz NOT NULL,
    at    timestamptz NOT NULL
);
