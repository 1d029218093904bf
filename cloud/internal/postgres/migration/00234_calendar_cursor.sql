-- +goose Up

-- The cursor of a calendar with bookings after the imported period hid them when they came into it. Each calendar is read whole once more.
UPDATE channel_listing SET feed_etag = '', feed_modified = '' WHERE feed_etag <> '' OR feed_modified <> '';
