-- +goose Up

-- The last success of recurring work: the canary write of each replica, sweeps, reconciliation, backups. Metrics and
-- readiness read their ages.
CREATE TABLE work_success (
    work text        PRIMARY KEY,
    at   timestamptz NOT NULL
);
