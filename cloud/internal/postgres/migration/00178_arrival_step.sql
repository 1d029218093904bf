-- +goose Up

-- How guests get from the street to their room: the steps of a branch in their order.
CREATE TABLE arrival_step (
    id        bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    branch_id integer NOT NULL REFERENCES branch ON DELETE CASCADE,
    position  integer NOT NULL CHECK (position > 0),
    text_ko   text    NOT NULL,
    text_en   text    NOT NULL,
    CONSTRAINT arrival_step_position UNIQUE (branch_id, position) DEFERRABLE INITIALLY DEFERRED
);

-- The photo of a step in one width, stored like the files of room_photo_file.
CREATE TABLE arrival_photo_file (
    step_id bigint  NOT NULL REFERENCES arrival_step ON DELETE CASCADE,
    name    text    NOT NULL,
    width   integer NOT NULL CHECK (width > 0),
    height  integer NOT NULL CHECK (height > 0),
    data    bytea   NOT NULL,
    PRIMARY KEY (step_id, width)
);
ALTER TABLE arrival_photo_file ALTER COLUMN data SET STORAGE EXTERNAL; -- JPEG does not shrink
CREATE INDEX arrival_photo_file_by_name ON arrival_photo_file (name);
