-- +goose Up

-- When a room was last cleaned. A stay that ended later leaves something to do.
CREATE TABLE room_cleaning (
    room_id    integer     PRIMARY KEY REFERENCES room ON DELETE CASCADE,
    cleaned_at timestamptz NOT NULL
);

-- The room that must be between stays for the request to be granted; NULL: no condition.
ALTER TABLE door_request ADD COLUMN vacant_room integer;

-- Whether a stay occupies a room: from the unlock window on (booking.UnlockLead), and until the end of its extensions. A stay
-- that is being cancelled may still have its guest inside.
CREATE FUNCTION room_has_stay(room integer, at timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM reservation r
        WHERE r.room_id = room AND r.state IN ('CONFIRMING', 'DONE', 'CANCELING')
          AND r.occupied && tstzrange(at - interval '6 hours', at + interval '2 minutes', '[]')
          AND r.start_at <= at + interval '2 minutes' AND coalesce(r.stay_end, r.end_at) > at)
$$;
