-- +goose Up

-- A window of diagnostics that was closed before its end. The service sends the message that closes it until the status of the agent names
-- the request, at most until the end.
ALTER TABLE agent_diagnostics ADD COLUMN closed_at timestamptz;
