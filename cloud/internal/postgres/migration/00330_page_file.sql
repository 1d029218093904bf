-- +goose Up

-- The files of the pages of each version, so that a replica serves those of a version that it does not contain.
CREATE TABLE page_file (
    name       text        PRIMARY KEY,
    data       bytea       NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now() -- the last start of a replica that contains it
);
