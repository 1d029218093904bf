-- +goose Up

-- A deposit is refunded by bank transfer. While the bank works on a part, and after it has rejected the part, the provider has taken the part
-- off the balance, so the refund is owed until the bank has transferred it, whatever an administrator or a second attempt changes about it.
-- With rest, a canceled reservation has more to return, which follows to the same account.
ALTER TABLE refund ADD COLUMN taken boolean NOT NULL DEFAULT false;
ALTER TABLE refund ADD COLUMN rest boolean NOT NULL DEFAULT false;

UPDATE refund SET taken = true WHERE state = 'PENDING' OR state = 'FAILED' AND error_code IN ('FAILED', 'PARTIAL_FAILED');
