-- +goose Up

-- One press of an unlock button. PENDING -> GRANTED -> SUCCESS | FAILED | UNKNOWN, PENDING -> FAILED:
-- granted and FAILED-without-grant are two exits of one row, so a PIN shown and a door opened later exclude each other.
CREATE TABLE door_request (
    id             uuid        PRIMARY KEY,
    branch_id      integer     NOT NULL REFERENCES branch,
    reservation_id bigint REFERENCES reservation,   -- NULL: an administrator's
    key_hash       bytea,                           -- SHA-256 of the doorlockKey used
    requested_by   text        NOT NULL,            -- customer, admin:<login id>, discord:<id>
    kind           text        NOT NULL CHECK (kind IN ('front', 'room')),
    device         text        NOT NULL,            -- of the result: front, room_<n>
    devices        text[]      NOT NULL,            -- the locks to drive
    state          text        NOT NULL DEFAULT 'PENDING' CHECK (state IN ('PENDING', 'GRANTED', 'SUCCESS', 'FAILED', 'UNKNOWN')),
    created_at     timestamptz NOT NULL,
    nonce          text,
    granted_at     timestamptz,
    finished_at    timestamptz,
    outcomes       jsonb       NOT NULL DEFAULT '{}',  -- device -> {outcome, detail}
    detail         text
);
CREATE INDEX door_request_open ON door_request (created_at) WHERE state IN ('PENDING', 'GRANTED');
CREATE INDEX door_request_by_branch ON door_request (branch_id, created_at);
CREATE INDEX door_request_by_reservation ON door_request (reservation_id, created_at) WHERE reservation_id IS NOT NULL;

-- What the doors did, as agents report it: relay, contact, exit button, forced, held.
CREATE TABLE door_event (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    branch_id  integer     NOT NULL REFERENCES branch,
    device     text        NOT NULL,
    kind       text        NOT NULL,
    at         timestamptz NOT NULL,
    request_id uuid,
    detail     jsonb       NOT NULL DEFAULT '{}'
);
CREATE INDEX door_event_by_branch ON door_event (branch_id, at);

-- Credentials of branch agents. An agent's MQTT client id equals its user name.
CREATE TABLE agent_credential (
    username    text        PRIMARY KEY,
    branch_id   integer     NOT NULL REFERENCES branch,
    secret_hash bytea       NOT NULL,               -- SHA-256 of a 256-bit random secret
    demo        boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now(),
    revoked_at  timestamptz
);
CREATE INDEX agent_credential_by_branch ON agent_credential (branch_id);

CREATE TABLE agent_enrollment (
    token_hash bytea       PRIMARY KEY,
    branch_id  integer     NOT NULL REFERENCES branch,
    created_by text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);

-- The last inventory an agent announced: served also while the branch is offline.
CREATE TABLE agent_inventory (
    branch_id  integer     PRIMARY KEY REFERENCES branch,
    version    text        NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    online     boolean     NOT NULL,
    inventory  jsonb       NOT NULL
);

-- Air conditioner options by leaf id, over all branches.
CREATE TABLE airconditioner_option (
    id        text    PRIMARY KEY,
    branch_id integer NOT NULL REFERENCES branch,
    unit      text    NOT NULL,
    path      text[]  NOT NULL
);
CREATE INDEX airconditioner_option_by_branch ON airconditioner_option (branch_id);

CREATE TABLE airconditioner_command (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    branch_id    integer     NOT NULL REFERENCES branch,
    option_id    text        NOT NULL,
    unit         text        NOT NULL,
    path         text[]      NOT NULL,
    requested_by text        NOT NULL,
    at           timestamptz NOT NULL,
    outcome      text        NOT NULL
);
CREATE INDEX airconditioner_command_by_branch ON airconditioner_command (branch_id, id);

CREATE TABLE sensor_reading (
    branch_id integer          NOT NULL REFERENCES branch,
    location  text             NOT NULL,
    at        timestamptz      NOT NULL,
    celsius   double precision NOT NULL,
    humidity  double precision NOT NULL,
    PRIMARY KEY (branch_id, location, at)
);
