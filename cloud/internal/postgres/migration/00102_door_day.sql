-- +goose Up

-- The presses of a door on a day of its branch, written once the day is over.
CREATE TABLE door_day (
    branch_id integer NOT NULL REFERENCES branch,
    device    text    NOT NULL,                 -- front, room_<n>
    day       date    NOT NULL,
    presses   integer NOT NULL,                 -- that reached the agent, or should have
    success   integer NOT NULL,
    p50_ms    integer,                          -- from the press to its success; NULL: none
    p95_ms    integer,
    retries   integer NOT NULL,                 -- within a minute after a press of the same stay
    pins      integer NOT NULL,                 -- disclosures of the PIN
    PRIMARY KEY (branch_id, day, device)
);
