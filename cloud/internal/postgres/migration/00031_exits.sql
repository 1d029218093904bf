-- +goose Up

-- A key that opens nothing while the provider is asked whether the money of its reservation is lost: a callback says so,
-- and the provider's answer does not. It is in doorlock_key again when the provider still holds the money after that time.
ALTER TABLE reservation ADD COLUMN blocked_key uuid; -- unique by an index of 00062
ALTER TABLE reservation ADD COLUMN blocked_until timestamptz;
ALTER TABLE reservation ADD CONSTRAINT reservation_blocked_key CHECK (blocked_key IS NULL OR doorlock_key IS NULL) NOT VALID;

-- When a callback without a signature last had the provider asked.
ALTER TABLE payment ADD COLUMN callback_look_up_at timestamptz;

-- Live unpaid holds are limited per client address and phone number.
ALTER TABLE reservation ADD COLUMN client text;
-- Their indexes are built in 00062.

-- An administrator returned the money outside the provider: how, with which reference.
ALTER TABLE refund ADD COLUMN settled_outside jsonb;
ALTER TABLE payment ADD COLUMN settled_outside integer NOT NULL DEFAULT 0 CHECK (settled_outside >= 0);

-- A refund account that is not the payer's waits for a second administrator; due_at is the legal deadline of a refund.
ALTER TABLE refund ADD COLUMN account_summary text;
ALTER TABLE refund ADD COLUMN account_by text;
ALTER TABLE refund ADD COLUMN account_approved_by text;
ALTER TABLE refund ADD COLUMN due_at timestamptz;

-- What an administrator resolved stays resolved until something new is found.
ALTER TABLE reconciliation_difference ADD COLUMN resolved_by text;
