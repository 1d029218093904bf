-- +goose Up

-- The messages of a stay that a sweep has queued: each once for the time that it is about. A moved stay gets new ones.
CREATE TABLE stay_message (
    reservation_id bigint      NOT NULL REFERENCES reservation ON DELETE CASCADE,
    template       text        NOT NULL,
    at             timestamptz NOT NULL,   -- the start of the stay, or its end
    queued_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (reservation_id, template, at)
);
