-- +goose Up

-- A link with which a guest enters the account of a refund: sent by message, stored hashed, used once.
CREATE TABLE refund_link (
    token_hash bytea       PRIMARY KEY,     -- SHA-256
    refund_id  bigint      NOT NULL REFERENCES refund,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX refund_link_by_refund ON refund_link (refund_id);

-- What a guest got whose door did not open: at most one row per reservation.
CREATE TABLE compensation (
    reservation_id bigint      PRIMARY KEY REFERENCES reservation,
    branch_id      integer     NOT NULL REFERENCES branch,
    mobile_key     text,                    -- of the guest, to count per phone and month
    since          timestamptz NOT NULL,    -- the first failure without an entry after it
    at             timestamptz NOT NULL,
    kind           text        NOT NULL CHECK (kind IN ('extended', 'refunded', 'none')),
    minutes        integer     NOT NULL DEFAULT 0,  -- by which the stay was extended
    amount         integer     NOT NULL DEFAULT 0,  -- won that are refunded
    refund_id      bigint REFERENCES refund,
    reason         text        NOT NULL DEFAULT ''  -- why there is none
);
CREATE INDEX compensation_by_phone ON compensation (mobile_key, at);
CREATE INDEX compensation_by_refund ON compensation (refund_id);
