-- +goose Up

-- What guests read about a room: a description, and amenities as a list of {ko, en}.
CREATE TABLE room_profile (
    room_id        integer PRIMARY KEY REFERENCES room ON DELETE CASCADE,
    description_ko text    NOT NULL,
    description_en text    NOT NULL,
    amenities      jsonb   NOT NULL
);

-- The photos of a room in the order in which they were added; the first one stands for the room.
CREATE TABLE room_photo (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room_id    integer     NOT NULL REFERENCES room ON DELETE CASCADE,
    alt_ko     text        NOT NULL,
    alt_en     text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX room_photo_by_room ON room_photo (room_id, id);

-- A photo in one width, encoded by the service. Its name is a hash of the data, so a file never changes. They are in the
-- database, so that every backup and every replica has them: a branch has at most a few dozen.
CREATE TABLE room_photo_file (
    photo_id bigint  NOT NULL REFERENCES room_photo ON DELETE CASCADE,
    name     text    NOT NULL,
    width    integer NOT NULL CHECK (width > 0),
    height   integer NOT NULL CHECK (height > 0),
    data     bytea   NOT NULL,
    PRIMARY KEY (photo_id, width)
);
ALTER TABLE room_photo_file ALTER COLUMN data SET STORAGE EXTERNAL; -- JPEG does not shrink
CREATE INDEX room_photo_file_by_name ON room_photo_file (name);
