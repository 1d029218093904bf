-- +goose Up

-- A rollout that has stopped can be resumed. change: the change of settings, which is made again to what each agent uses then; null: a
-- package, or a rollout of an earlier version. failure: the reason why a member failed, which its way back does not erase.
ALTER TABLE agent_rollout ADD COLUMN change jsonb;
ALTER TABLE agent_rollout_member ADD COLUMN failure text NOT NULL DEFAULT '';
