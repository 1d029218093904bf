-- +goose Up

-- The failure of the version that an agent reported when it was asked for it, so that it does not count as one of the new package.
ALTER TABLE agent_rollout_member ADD COLUMN before_failure text NOT NULL DEFAULT '';
