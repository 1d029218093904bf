-- +goose Up

-- Keys that sign grants, made by a rotation. seed is sealed, and removed when the key is retired. The first keys are those of
-- the setting YEOLDA_GRANT_KEY; they have a row without a seed as soon as there is another one.
CREATE TABLE grant_key (
    public     text        PRIMARY KEY,  -- Ed25519, base64
    seed       bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz               -- no grant is signed with the key any more
);

-- The signed lists that replace the keys agents trust, in the order of their epochs. Each one is signed with a key of the list
-- before it, so an agent that was away during several rotations applies one after the other.
CREATE TABLE grant_key_list (
    epoch      bigint      PRIMARY KEY CHECK (epoch > 0),
    keys       text[]      NOT NULL CHECK (cardinality(keys) > 0),  -- the first one signs grants
    signature  text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- issued_epoch: the list whose keys are part of the credential. key_epoch: the list that the agent uses, by its last status.
ALTER TABLE agent_credential
    ADD COLUMN issued_epoch bigint NOT NULL DEFAULT 0,
    ADD COLUMN key_epoch    bigint NOT NULL DEFAULT 0;
ALTER TABLE agent_enrollment ADD COLUMN key_epoch bigint NOT NULL DEFAULT 0;
