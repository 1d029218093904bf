-- +goose Up

-- While a message about a block is on its way, the next one waits: they must not overtake each other at the partner.
ALTER TABLE channel_block ADD COLUMN busy_until timestamptz;

