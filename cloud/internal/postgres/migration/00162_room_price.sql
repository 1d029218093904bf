-- +goose Up

-- The price rules of a room: from a day on, at some times, another price list (docs/specification.md, Price rules). Of the
-- rules that apply to a time, the one with the highest position counts. days are weekdays from Sunday, 0; with neither days
-- nor holidays a rule applies every day. hours_from and hours_to are minutes of the day on which the hours begin.
CREATE TABLE room_price (
    room_id    integer    NOT NULL REFERENCES room ON DELETE CASCADE,
    position   smallint   NOT NULL CHECK (position >= 0),
    "from"     date       NOT NULL,
    days       smallint[] NOT NULL DEFAULT '{}',
    holidays   boolean    NOT NULL DEFAULT false,
    hours_from smallint,
    hours_to   smallint,
    min10      integer CHECK (min10 > 0),
    min30      integer CHECK (min30 > 0),
    min60      integer CHECK (min60 > 0),
    PRIMARY KEY (room_id, position),
    CHECK (hours_from IS NULL AND hours_to IS NULL OR hours_from BETWEEN 0 AND 1430 AND hours_to BETWEEN hours_from + 10 AND hours_from + 1440),
    CHECK (coalesce(min10, min30, min60) IS NOT NULL)
);

-- The price for which a time is held; null for holds of administrators and of older programs.
ALTER TABLE reservation ADD COLUMN held_price integer CHECK (held_price > 0);
