-- +goose Up

-- The settings of agents: the text of their settings file, in numbered versions. The service sends the last version of an agent until
-- the agent reports its end.
CREATE TABLE agent_settings (
    username   text        NOT NULL REFERENCES agent_credential,
    version    bigint      NOT NULL CHECK (version > 0),
    settings   text        NOT NULL,
    created_by text        NOT NULL,
    created_at timestamptz NOT NULL,
    -- asked: sent until the agent answers; replaced: was in use; superseded: a later version came before the answer
    state      text        NOT NULL DEFAULT 'asked'
        CHECK (state IN ('asked', 'in-use', 'refused', 'rolled-back', 'replaced', 'superseded')),
    detail     text        NOT NULL DEFAULT '',
    state_at   timestamptz NOT NULL, -- the state began
    PRIMARY KEY (username, version)
);
CREATE INDEX agent_settings_asked ON agent_settings (username) WHERE state = 'asked';

-- Brokers outside: the kinds of settings.
INSERT INTO mqtt_kind (name, action, own) VALUES ('settings', 'subscribe', true), ('settings/file', 'publish', true);
