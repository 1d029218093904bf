-- +goose Up

-- The whole time that a partner has sold with a booking in conflict, with its margin, until the conflict ends. Holds cover the part of it that
-- was free; the rest is not for sale either when it becomes free.
CREATE TABLE partner_conflict (
    reservation_id bigint    PRIMARY KEY REFERENCES reservation ON DELETE CASCADE,
    room_id        integer   NOT NULL REFERENCES room ON DELETE CASCADE,
    occupied       tstzrange NOT NULL
);
CREATE INDEX partner_conflict_time ON partner_conflict USING gist (room_id, occupied);
