-- +goose Up

-- A refund with keeps_stay leaves the reservation as it is: a guest may be compensated and stay. A refund of a part names
-- its amount at the provider.
ALTER TABLE refund ADD COLUMN keeps_stay boolean NOT NULL DEFAULT false;
ALTER TABLE refund ADD COLUMN part boolean NOT NULL DEFAULT false;

-- returned is the sum of the refunds with keeps_stay that were not refused; retained is what the refund policy left with
-- the shop when the guest canceled.
ALTER TABLE payment ADD COLUMN returned integer NOT NULL DEFAULT 0 CHECK (returned >= 0);
ALTER TABLE payment ADD COLUMN retained integer NOT NULL DEFAULT 0 CHECK (retained >= 0);
ALTER TABLE payment ADD CONSTRAINT payment_refunds_within_paid CHECK (returned + settled_outside <= total_amount) NOT VALID;

-- Requests for a refund with an Idempotency-Key: the same key with the same body has the same answer.
CREATE TABLE refund_request (
    reservation_id bigint      NOT NULL REFERENCES reservation,
    key            text        NOT NULL,
    body_hash      bytea       NOT NULL,    -- SHA-256 of the decoded body
    refund_id      bigint      NOT NULL REFERENCES refund,
    amount         integer     NOT NULL,
    balance        integer     NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (reservation_id, key)
);
CREATE INDEX refund_request_by_refund ON refund_request (refund_id);

-- The refund policy and the compensation of a branch (NULL: the specification's rule, no compensation), and the policy
-- that was fixed for a reservation when it was paid.
ALTER TABLE branch ADD COLUMN refund_policy jsonb;
ALTER TABLE branch ADD COLUMN compensation jsonb;
ALTER TABLE reservation ADD COLUMN refund_policy jsonb;
