-- +goose Up

-- Notes of staff about a guest, and numbers that may not reserve. A guest is a phone number in the notation of
-- reservation.mobile_key. Both are kept as long as a reservation of the number.
CREATE TABLE guest_note (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mobile_key text        NOT NULL,
    branch_id  integer     NOT NULL REFERENCES branch,
    text       text        NOT NULL,
    created_by text        NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX guest_note_by_guest ON guest_note (mobile_key);

CREATE TABLE guest_block (
    mobile_key text        PRIMARY KEY,
    reason     text        NOT NULL,
    created_by text        NOT NULL,
    created_at timestamptz NOT NULL
);
