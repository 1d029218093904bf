-- +goose Up

-- The photo that a cleaner took of the room after a stay, as a small JPEG that the service has encoded. It is deleted after
-- 30 days.
CREATE TABLE cleaning_photo (
    reservation_id bigint      PRIMARY KEY REFERENCES reservation ON DELETE CASCADE,
    taken_at       timestamptz NOT NULL,
    taken_by       text        NOT NULL,
    data           bytea       NOT NULL
);
ALTER TABLE cleaning_photo ALTER COLUMN data SET STORAGE EXTERNAL; -- JPEG does not shrink
CREATE INDEX cleaning_photo_by_age ON cleaning_photo (taken_at);
