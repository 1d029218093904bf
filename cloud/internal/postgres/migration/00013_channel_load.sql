-- +goose Up

-- Blocks of what is over are the many, and nobody asks about them again.
CREATE INDEX channel_block_upcoming ON channel_block (end_at) WHERE state IN ('WANTED', 'PLACED');
