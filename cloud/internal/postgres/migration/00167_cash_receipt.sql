-- +goose Up

-- A cash receipt that the guest of a reservation wants (docs/specification.md, Cash receipts). standing is the won of the one
-- that stands at the provider; sequence counts the requests to issue one, attempt the keys of the current request.
CREATE TABLE cash_receipt (
    reservation_id bigint      PRIMARY KEY REFERENCES reservation,
    type           text        NOT NULL CHECK (type IN ('personal', 'business')),
    number         bytea,                  -- sealed; null: erased
    masked         text,                   -- the number with its middle hidden
    state          text        NOT NULL DEFAULT 'requested' CHECK (state IN
                       ('requested', 'issuing', 'issued', 'completed', 'canceling', 'canceled', 'failed', 'outside', 'with-payment')),
    sequence       integer     NOT NULL DEFAULT 0,
    attempt        integer     NOT NULL DEFAULT 0,
    amount         integer     NOT NULL DEFAULT 0,
    standing       integer     NOT NULL DEFAULT 0 CHECK (standing IN (0, amount)),
    receipt_key    text,
    issue_number   text,
    url            text,
    error_code     text,
    error_message  text,
    outside        jsonb,                  -- how an administrator issued or canceled it by hand
    requested_at   timestamptz,            -- when the current request was first sent
    sent_at        timestamptz,            -- when it was last sent
    checks         integer     NOT NULL DEFAULT 0,
    check_at       timestamptz,            -- when the next step is due; null: none
    updated_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX cash_receipt_due ON cash_receipt (check_at) WHERE check_at IS NOT NULL;
CREATE INDEX cash_receipt_open ON cash_receipt (requested_at) WHERE state IN ('issuing', 'canceling', 'failed');
