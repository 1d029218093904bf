-- +goose Up

-- The same picture in smaller formats, for browsers that accept them. NULL: the photo is older than the formats, or a format
-- does not make it smaller.
ALTER TABLE room_photo_file ADD COLUMN webp bytea, ADD COLUMN avif bytea;
ALTER TABLE arrival_photo_file ADD COLUMN webp bytea, ADD COLUMN avif bytea;
ALTER TABLE room_photo_file ALTER COLUMN webp SET STORAGE EXTERNAL, ALTER COLUMN avif SET STORAGE EXTERNAL;
ALTER TABLE arrival_photo_file ALTER COLUMN webp SET STORAGE EXTERNAL, ALTER COLUMN avif SET STORAGE EXTERNAL;
