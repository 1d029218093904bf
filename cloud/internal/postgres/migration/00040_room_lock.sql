-- +goose Up
-- Whether guests can open a room: 'fitted' (a branch file, or a door that the agent reported and a PIN, vouches for the
-- lock), 'unproven' (added in the console, no door seen yet), 'none' (a room without a lock, declared by an administrator).
ALTER TABLE room ADD COLUMN lock text NOT NULL DEFAULT 'fitted' CHECK (lock IN ('fitted', 'unproven', 'none'));
