-- +goose Up

-- Updates of agents in waves. At most one is open. packages: by version, the packages as in protocol.Update.
CREATE TABLE agent_rollout (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    version    text        NOT NULL,
    waves      integer[]   NOT NULL CHECK (cardinality(waves) > 0), -- percent of the agents, rising to 100
    wave       integer     NOT NULL DEFAULT 1,                       -- the current one, from 1
    settle     interval    NOT NULL,                                 -- how long a new version is watched
    packages   jsonb       NOT NULL,
    state      text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'reverting', 'stopped', 'done')),
    reason     text        NOT NULL DEFAULT '',
    created_by text        NOT NULL,
    created_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE UNIQUE INDEX agent_rollout_open ON agent_rollout ((true)) WHERE ended_at IS NULL;

CREATE TABLE agent_rollout_member (
    rollout_id     bigint      NOT NULL REFERENCES agent_rollout,
    username       text        NOT NULL,
    branch         text        NOT NULL,
    wave           integer     NOT NULL,
    state          text        NOT NULL DEFAULT 'waiting',
    before_version text        NOT NULL DEFAULT '',
    before_failed  integer     NOT NULL DEFAULT 0,  -- self-tests
    asked_at       timestamptz,
    since          timestamptz,                     -- the agent has been seen with the new version
    detail         text        NOT NULL DEFAULT '',
    PRIMARY KEY (rollout_id, username)
);
