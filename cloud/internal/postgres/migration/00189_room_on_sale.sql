-- +goose Up

-- Whatever writes a room, one whose lock is unproven is not on sale. The existing rooms are not read: none is, because the
-- programs had the same rule.
ALTER TABLE room ADD CONSTRAINT room_on_sale_has_a_lock CHECK (NOT (enabled AND lock = 'unproven')) NOT VALID;
