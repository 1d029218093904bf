-- +goose Up
-- The list of a month's payments, newest first, and its sums.
CREATE INDEX reservation_by_payment ON reservation (branch_id, (coalesce(paid_at, created_at)), id)
    WHERE method IS NOT NULL AND method <> '관리자' AND state IN ('DONE', 'WAITING_FOR_DEPOSIT', 'CANCELING', 'CANCELED');
