-- +goose Up

-- The addresses of a pool's brokers for agents, as the service was set up with them. The last row counts; it is signed for each
-- agent when it is sent.
CREATE TABLE broker_list (
    epoch    bigint      PRIMARY KEY CHECK (epoch > 0),
    brokers  text[]      NOT NULL,
    added_at timestamptz NOT NULL DEFAULT now()
);
