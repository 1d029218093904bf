-- +goose Up

-- The last window of diagnostics of each agent. The service sends the request until the status of the agent names it.
CREATE TABLE agent_diagnostics (
    username       text        PRIMARY KEY REFERENCES agent_credential,
    request        text        NOT NULL,
    opened_by      text        NOT NULL, -- of the last request
    opened_at      timestamptz NOT NULL,
    ends_at        timestamptz NOT NULL,
    messages       integer     NOT NULL DEFAULT 0, -- stored since the last request
    doctor_request text,                 -- that asked for the report of the doctor last; null: none
    doctor_at      timestamptz,          -- the time of that request
    report         text,
    report_at      timestamptz
);

-- The log that agents have sent in their windows, as they sent it. Little of it is kept, for an hour.
CREATE TABLE agent_log (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    username    text        NOT NULL REFERENCES agent_credential,
    received_at timestamptz NOT NULL,
    dropped     bigint      NOT NULL, -- lines before these that the agent did not send
    lines       jsonb       NOT NULL,
    size        integer     NOT NULL  -- of lines in bytes
);
CREATE INDEX agent_log_of_agent ON agent_log (username, id);

-- Brokers outside: the kinds of diagnostics.
INSERT INTO mqtt_kind (name, action, own) VALUES
    ('diagnostics', 'subscribe', true), ('diagnostics/log', 'publish', true), ('diagnostics/report', 'publish', true);
