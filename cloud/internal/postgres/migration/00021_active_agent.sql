-- +goose Up

-- A branch may have several credentials, of which at most one is active: the cloud asks no other agent to open a door and
-- counts no other agent's reports. The last status of each credential is kept, so that an activation takes effect at once.
ALTER TABLE agent_credential
    ADD COLUMN active        boolean NOT NULL DEFAULT false,
    ADD COLUMN activated_at  timestamptz,                       -- NULL: it was never active
    ADD COLUMN online        boolean NOT NULL DEFAULT false,
    ADD COLUMN seen_at       timestamptz,
    ADD COLUMN report        jsonb,                             -- {version, startedAt, inventory, selfTest}
    ADD COLUMN takeovers     integer NOT NULL DEFAULT 0,        -- times another machine connected with this credential
    ADD COLUMN taken_over_at timestamptz;
CREATE UNIQUE INDEX agent_credential_active ON agent_credential (branch_id) WHERE active AND revoked_at IS NULL;

-- Of several credentials it is not known which one serves the branch: the first one that reports every door becomes active.
UPDATE agent_credential a SET active = true, activated_at = clock_timestamp()
WHERE revoked_at IS NULL AND NOT EXISTS (
    SELECT FROM agent_credential o WHERE o.branch_id = a.branch_id AND o.revoked_at IS NULL AND o.username <> a.username);

-- Conditions that an administrator must know about. At most one is open per kind, branch and subject.
CREATE TABLE IF NOT EXISTS alert (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind            text        NOT NULL,
    branch          text        NOT NULL DEFAULT '',            -- code; empty: all branches
    subject         text        NOT NULL DEFAULT '',
    since           timestamptz NOT NULL,
    notified_at     timestamptz,
    acknowledged_by text,
    ended_at        timestamptz
);
CREATE UNIQUE INDEX IF NOT EXISTS alert_open ON alert (kind, branch, subject) WHERE ended_at IS NULL;
