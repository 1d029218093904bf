-- +goose Up

-- The embedded brokers of a pool: how the replicas find each other. A replica renews its row while it runs. secret is the
-- password, sealed, with which the others connect to its broker since its last start.
CREATE TABLE broker_peer (
    url text PRIMARY KEY,
    secret bytea NOT NULL,
    seen_at timestamptz NOT NULL
);
