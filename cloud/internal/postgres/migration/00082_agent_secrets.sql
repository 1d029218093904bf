-- +goose Up

-- public_key: answers the challenge at connect; NULL: the agent connects with its password. rotation: the identifier of a
-- rotation that the agent has not answered yet.
ALTER TABLE agent_credential
    ADD COLUMN public_key bytea CHECK (length(public_key) = 32),
    ADD COLUMN rotation   text,
    ADD COLUMN rotated_at timestamptz;
