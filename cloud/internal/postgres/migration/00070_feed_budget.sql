-- +goose Up

-- Reads of a feed that began and did not end, because the process died: a calendar that kills the service must not be
-- due again at once. A feed in quarantine is read once an hour until its calendar is acceptable again.
ALTER TABLE channel_listing
    ADD COLUMN feed_unfinished     integer NOT NULL DEFAULT 0,
    ADD COLUMN feed_quarantined_at timestamptz;
