-- +goose Up

-- Since when every reading of a calendar has failed; null: the last one succeeded. After an hour an alert is raised, because the partner sells
-- the room meanwhile.
ALTER TABLE channel_listing ADD COLUMN feed_unread_since timestamptz;
