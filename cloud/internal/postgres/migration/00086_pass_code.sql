-- +goose Up

-- What the cloud knows about the pass lists and the code key of a credential. The code key is sealed by the service.
CREATE TABLE pass_agent (
    username        text        PRIMARY KEY REFERENCES agent_credential,
    seal_key        bytea,                              -- the agent's X25519 public key; NULL: it has announced none
    salt            bytea,                              -- of the verifiers
    salted_at       timestamptz,
    epoch           bigint      NOT NULL DEFAULT 1,     -- of the lists; a higher one follows a restored database
    version         bigint      NOT NULL DEFAULT 0,     -- of the last list
    content         bytea,                              -- SHA-256 of what the last list says
    issued_at       timestamptz,
    applied_epoch   bigint      NOT NULL DEFAULT 0,     -- of the last list that the agent acknowledged
    applied_version bigint      NOT NULL DEFAULT 0,
    applied_at      timestamptz,
    code_epoch      bigint      NOT NULL DEFAULT 0,
    code_key        bytea,
    code_version    bigint      NOT NULL DEFAULT 0,     -- of the first list with this code key
    code_ready      boolean     NOT NULL DEFAULT false  -- the agent has acknowledged a list with this code key
);

-- The one-time codes that were given: the digits follow from the code key of the credential, device, step and index.
CREATE TABLE pass_code (
    username       text        NOT NULL REFERENCES agent_credential,
    device         text        NOT NULL,                -- front, room_<n>
    step           bigint      NOT NULL,                -- unix time / 60 s
    i              smallint    NOT NULL CHECK (i BETWEEN 0 AND 9),
    code_epoch     bigint      NOT NULL,
    branch_id      integer     NOT NULL,
    reservation_id bigint,                              -- NULL: an administrator's
    request_id     uuid,                                -- of the failed request; NULL: without one
    PRIMARY KEY (username, device, step, i)
);
CREATE INDEX pass_code_by_request ON pass_code (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX pass_code_by_reservation ON pass_code (reservation_id, step) WHERE reservation_id IS NOT NULL;

-- Gives a code for a device, of which no two of one step have the same index. NULL: the device has no agent keypad, the
-- agent does not have the code key yet, the ten codes of this minute are given, or the reservation has three of them.
-- +goose StatementBegin
CREATE FUNCTION pick_pass_code(of_branch integer, of_device text, of_reservation bigint, of_request uuid, at timestamptz)
RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
    this_step CONSTANT bigint := floor(extract(epoch FROM at) / 60);
    agent record;
BEGIN
    SELECT a.username, p.code_epoch INTO agent
    FROM branch b JOIN agent_credential a ON a.branch_id = b.id AND a.active AND a.revoked_at IS NULL
    JOIN pass_agent p ON p.username = a.username AND p.code_ready
    WHERE b.id = of_branch AND CASE of_device
        WHEN 'front' THEN EXISTS (SELECT FROM unnest(b.front_doors) front WHERE b.keypads ->> front = 'agent')
        ELSE b.keypads ->> of_device = 'agent' END;
    IF NOT FOUND OR of_reservation IS NOT NULL AND 3 <= (
        SELECT count(*) FROM pass_code c WHERE c.reservation_id = of_reservation AND c.step = this_step AND c.device = of_device) THEN
        RETURN NULL;
    END IF;
    FOR index IN 0..9 LOOP
        INSERT INTO pass_code (username, device, step, i, code_epoch, branch_id, reservation_id, request_id)
        VALUES (agent.username, of_device, this_step, index, agent.code_epoch, of_branch, of_reservation, of_request)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN index;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Gives a code for a request that has just ended without a success, in the transaction that decided so: to staff, and to a guest whose
-- reservation is valid at this moment for this door.
-- +goose StatementBegin
CREATE FUNCTION give_pass_code(d door_request, at timestamptz) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
    lead CONSTANT interval := '2 minutes'; -- booking.UnlockLead
BEGIN
    IF d.state NOT IN ('FAILED', 'UNKNOWN') OR d.reservation_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM reservation r JOIN room m ON m.id = r.room_id LEFT JOIN pass p ON p.reservation_id = r.id AND p.ended_at IS NULL
        WHERE r.id = d.reservation_id AND r.state = 'DONE' AND NOT r.keys_blocked AND r.branch_id + 0 = d.branch_id
          AND coalesce(p.not_before, r.start_at - lead) <= at AND at < coalesce(p.not_after, r.end_at - lead)
          AND (d.kind = 'front' OR d.device = 'room_' || m.no)) THEN
        RETURN NULL;
    END IF;
    RETURN pick_pass_code(d.branch_id, d.device, d.reservation_id, d.id, at);
END $$;
-- +goose StatementEnd

-- The journals of agents: attempts at keypads, each once, in the order of their chain. A code's entry names no pass.
CREATE TABLE pass_entry (
    username       text        NOT NULL REFERENCES agent_credential,
    journal        text        NOT NULL,
    entry          bigint      NOT NULL,
    branch_id      integer     NOT NULL,
    pass_id        uuid,
    reservation_id bigint,
    device         text        NOT NULL,
    at             timestamptz NOT NULL,                -- the agent's clock
    outcome        text        NOT NULL,
    reason         text        NOT NULL,
    source         text        NOT NULL,
    previous       text        NOT NULL,
    hash           text        NOT NULL,
    received_at    timestamptz NOT NULL,
    PRIMARY KEY (username, journal, entry)
);
CREATE INDEX pass_entry_by_branch ON pass_entry (branch_id, at);
CREATE INDEX pass_entry_by_reservation ON pass_entry (reservation_id, at) WHERE reservation_id IS NOT NULL;

-- The end of each journal's verified chain.
CREATE TABLE pass_journal (
    username text   NOT NULL REFERENCES agent_credential,
    journal  text   NOT NULL,
    entry    bigint NOT NULL,
    hash     text   NOT NULL,
    broken   bigint,                                    -- the first entry whose hash does not continue the chain
    PRIMARY KEY (username, journal)
);
