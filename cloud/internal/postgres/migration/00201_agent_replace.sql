-- +goose Up

-- The credential whose machine a new one replaces: it gets that one's settings, becomes active as soon as its doors work, and revokes
-- the other one then. NULL: it replaces none.
ALTER TABLE agent_enrollment ADD COLUMN replaces text;
ALTER TABLE agent_credential ADD COLUMN replaces text;
