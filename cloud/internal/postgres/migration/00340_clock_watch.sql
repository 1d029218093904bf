-- +goose Up

-- The time that the sweep saw last, and the last step by more than a day, after which nothing is deleted for good for a while. One row.
CREATE TABLE clock_watch (
    one          boolean     PRIMARY KEY DEFAULT true CHECK (one),
    seen_at      timestamptz NOT NULL,
    stepped_from timestamptz,
    stepped_to   timestamptz
);
