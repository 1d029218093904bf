-- +goose Up

-- Receivers of the stream of events.
CREATE TABLE webhook (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    url           text        NOT NULL,
    types         text[]      NOT NULL DEFAULT '{}',    -- types or families such as reservation.*; empty: all
    branches      text[]      NOT NULL DEFAULT '{}',    -- codes; empty: all
    secret        bytea       NOT NULL,                 -- sealed
    created_by    text        NOT NULL,
    created_at    timestamptz NOT NULL,
    enabled       boolean     NOT NULL DEFAULT true,
    disabled_at   timestamptz,                          -- when it was disabled because deliveries failed for a day
    place         bigint      NOT NULL,                 -- events up to here became deliveries
    leased_until  timestamptz,                          -- one process delivers to a receiver at a time
    retry_at      timestamptz,                          -- the receiver is away: no delivery before
    failing_since timestamptz
);

-- An event on its way to a receiver. Those of one subject are delivered one after another.
CREATE TABLE webhook_delivery (
    webhook_id   bigint      NOT NULL REFERENCES webhook ON DELETE CASCADE,
    place        bigint      NOT NULL,                  -- of the event
    type         text        NOT NULL,
    subject      text        NOT NULL,
    body         text        NOT NULL,
    attempts     integer     NOT NULL DEFAULT 0,
    next_at      timestamptz NOT NULL,
    first_at     timestamptz,                           -- first attempt
    last_at      timestamptz,
    status       integer,                               -- HTTP status of the last attempt
    error        text,
    delivered_at timestamptz,
    PRIMARY KEY (webhook_id, place)
);
CREATE INDEX webhook_delivery_pending ON webhook_delivery (webhook_id, subject, place) WHERE delivered_at IS NULL;
CREATE INDEX webhook_delivery_by_age ON webhook_delivery (delivered_at);
