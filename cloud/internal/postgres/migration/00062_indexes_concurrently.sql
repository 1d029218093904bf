-- +goose NO TRANSACTION
-- +goose Up

-- The indexes of 00031 and 00041, built without blocking reads or writes of reservations.
SET lock_timeout = 0;

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS reservation_blocked_key_key ON reservation (blocked_key);

DROP INDEX CONCURRENTLY IF EXISTS reservation_unpaid_by_client;
CREATE INDEX CONCURRENTLY reservation_unpaid_by_client ON reservation (client)
    WHERE state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT');

DROP INDEX CONCURRENTLY IF EXISTS reservation_unpaid_by_phone;
CREATE INDEX CONCURRENTLY reservation_unpaid_by_phone ON reservation (mobile_key)
    WHERE state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT');

-- The list of a month's payments, newest first, and its sums.
DROP INDEX CONCURRENTLY IF EXISTS reservation_by_payment;
CREATE INDEX CONCURRENTLY reservation_by_payment ON reservation (branch_id, (coalesce(paid_at, created_at)), id)
    WHERE method IS NOT NULL AND method <> '관리자' AND state IN ('DONE', 'WAITING_FOR_DEPOSIT', 'CANCELING', 'CANCELED');

RESET lock_timeout;
