-- +goose Up

-- A rollout installs a package, or gives agents other settings. settings: the text that a member gets; goal and back: the versions of
-- its settings that were made for it and for its way back.
ALTER TABLE agent_rollout ADD COLUMN kind text NOT NULL DEFAULT 'package';
ALTER TABLE agent_rollout_member ADD COLUMN settings text, ADD COLUMN goal bigint, ADD COLUMN back bigint;
