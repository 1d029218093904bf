-- +goose NO TRANSACTION
-- +goose Up

-- Metrics, doctor and sweeps count recent rows; without these indexes they scan all history. A build that was
-- interrupted leaves an invalid index, hence the drops. The builds wait for transactions such as a backup, but hold no
-- lock that blocks reads or writes, so they need no lock_timeout.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS reservation_upcoming;
CREATE INDEX CONCURRENTLY reservation_upcoming ON reservation (upper(occupied), state)
    WHERE state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING');

DROP INDEX CONCURRENTLY IF EXISTS payment_by_attempt;
CREATE INDEX CONCURRENTLY payment_by_attempt ON payment (attempted_at);

DROP INDEX CONCURRENTLY IF EXISTS payment_by_deposit;
CREATE INDEX CONCURRENTLY payment_by_deposit ON payment (deposited_at) WHERE deposited_at IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS message_unfinished;
CREATE INDEX CONCURRENTLY message_unfinished ON message (created_at) WHERE state IN ('QUEUED', 'SENDING', 'FAILED');

DROP INDEX CONCURRENTLY IF EXISTS refund_unfinished;
CREATE INDEX CONCURRENTLY refund_unfinished ON refund (updated_at, state) WHERE state <> 'COMPLETED';

DROP INDEX CONCURRENTLY IF EXISTS reconciliation_unresolved;
CREATE INDEX CONCURRENTLY reconciliation_unresolved ON reconciliation_difference (id) WHERE resolved_at IS NULL;

RESET lock_timeout;
