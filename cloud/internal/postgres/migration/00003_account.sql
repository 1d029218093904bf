-- +goose Up

-- Sessions of customers and administrators; token is hashed by the session manager before it gets here.
CREATE TABLE session (
    token      text        PRIMARY KEY,
    data       jsonb       NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX session_by_expiry ON session (expires_at);
CREATE INDEX session_by_admin ON session ((data ->> 'adminLoginId')) WHERE data ? 'adminLoginId';

CREATE TABLE login_code (
    login_type text        NOT NULL CHECK (login_type IN ('mobile', 'email')),
    login_id   text        NOT NULL,            -- normalised
    code_hash  bytea       NOT NULL,
    tries      integer     NOT NULL DEFAULT 0,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (login_type, login_id)
);

-- Fixed windows, shared by all replicas.
CREATE TABLE rate_limit (
    key          text        NOT NULL,
    window_start timestamptz NOT NULL,
    count        integer     NOT NULL,
    PRIMARY KEY (key, window_start)
);

CREATE TABLE administrator (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    login_id      text        NOT NULL UNIQUE,
    password_hash text        NOT NULL,         -- argon2id, PHC string
    role          text        NOT NULL CHECK (role IN ('hq', 'manager', 'viewer')),
    totp_secret   bytea,                        -- sealed; NULL = off
    demo          boolean     NOT NULL DEFAULT false,
    disabled_at   timestamptz,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE administrator_branch (
    administrator_id integer NOT NULL REFERENCES administrator ON DELETE CASCADE,
    branch_id        integer NOT NULL REFERENCES branch ON DELETE CASCADE,
    PRIMARY KEY (administrator_id, branch_id)
);

-- Who did what to what, from where. Append-only and hash-chained.
CREATE TABLE audit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor      text        NOT NULL,            -- admin:<login id>, customer:<reservation>, system, discord:<id>
    branch_id  integer REFERENCES branch,
    action     text        NOT NULL,            -- door.unlock, reservation.cancel, pin.reveal, …
    target     text        NOT NULL DEFAULT '',
    detail     jsonb       NOT NULL DEFAULT '{}',
    address    text        NOT NULL DEFAULT '',
    request_id text        NOT NULL DEFAULT '',
    prev_hash  bytea,
    hash       bytea
);
CREATE INDEX audit_by_branch ON audit (branch_id, id);
CREATE INDEX audit_by_target ON audit (target, id);

-- +goose StatementBegin
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_append_only BEFORE DELETE OR TRUNCATE ON audit EXECUTE FUNCTION append_only();
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger EXECUTE FUNCTION append_only();

CREATE TABLE franchise_inquiry (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    name       text NOT NULL,
    mobile     text NOT NULL,
    email      text NOT NULL,
    region     text NOT NULL,
    message    text NOT NULL
);

-- Messages to people: written in the transaction that makes them necessary, sent after its commit.
CREATE TABLE message (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at     timestamptz NOT NULL DEFAULT now(),
    reservation_id bigint REFERENCES reservation,
    branch_id      integer REFERENCES branch,
    template       text        NOT NULL,
    language       text        NOT NULL DEFAULT 'ko',
    to_mobile      text        NOT NULL DEFAULT '',
    to_email       text        NOT NULL DEFAULT '',
    variables      bytea       NOT NULL,        -- sealed JSON: holds keys and codes
    state          text        NOT NULL DEFAULT 'QUEUED' CHECK (state IN ('QUEUED', 'SENDING', 'SENT', 'FAILED')),
    channel        text,
    provider_id    text,
    attempt        integer     NOT NULL DEFAULT 0,
    next_at        timestamptz NOT NULL DEFAULT now(),
    sent_at        timestamptz,
    error          text
);
CREATE INDEX message_by_reservation ON message (reservation_id, id);
CREATE INDEX message_by_branch ON message (branch_id, id);
CREATE INDEX message_unsent ON message (next_at) WHERE state IN ('QUEUED', 'SENDING');
