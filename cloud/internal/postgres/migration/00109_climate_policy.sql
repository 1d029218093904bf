-- +goose Up

-- How the air of a room follows its stays. The last three columns are the state of the room: the stay for which the unit
-- was switched on, since when, and the temperature before.
CREATE TABLE climate_policy (
    room_id       integer PRIMARY KEY REFERENCES room ON DELETE CASCADE,
    branch_id     integer          NOT NULL REFERENCES branch,
    unit          text             NOT NULL,
    sensor        text,                         -- location; NULL: the room has none
    arrive_option text             NOT NULL,    -- airconditioner_id
    leave_option  text             NOT NULL,
    lead_minutes  integer          NOT NULL CHECK (lead_minutes BETWEEN 0 AND 60),
    lag_minutes   integer          NOT NULL CHECK (lag_minutes BETWEEN 0 AND 60),
    low           double precision NOT NULL,
    high          double precision NOT NULL CHECK (low < high),
    guest_options text[]           NOT NULL DEFAULT '{}',
    owner         bigint,
    owner_since   timestamptz,
    ambient       double precision
);

-- What a guest chose for a stay.
CREATE TABLE climate_choice (
    reservation_id bigint PRIMARY KEY REFERENCES reservation,
    option_id      text        NOT NULL,
    at             timestamptz NOT NULL
);

-- The switching of a unit for a stay: planned, sent, and what the sensor of the room saw of it.
CREATE TABLE climate_intent (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    branch_id      integer     NOT NULL REFERENCES branch,
    room_id        integer     NOT NULL REFERENCES room ON DELETE CASCADE,
    reservation_id bigint      NOT NULL REFERENCES reservation,
    edge           text        NOT NULL CHECK (edge IN ('arrive', 'leave')),
    at             timestamptz NOT NULL,
    option_id      text        NOT NULL,
    state          text        NOT NULL CHECK (state IN ('planned', 'sent', 'working', 'no-effect', 'canceled')),
    due            boolean     NOT NULL DEFAULT false,
    attempts       integer     NOT NULL DEFAULT 0,
    next_at        timestamptz NOT NULL,
    sent_at        timestamptz,
    baseline       double precision,            -- temperature at the first attempt
    judged_at      timestamptz                  -- no further attempt or judgement
);
CREATE UNIQUE INDEX climate_intent_planned ON climate_intent (reservation_id, room_id, edge) WHERE state = 'planned';
CREATE INDEX climate_intent_open ON climate_intent (room_id) WHERE state IN ('planned', 'sent') AND judged_at IS NULL;
CREATE INDEX climate_intent_by_branch ON climate_intent (branch_id, at);
