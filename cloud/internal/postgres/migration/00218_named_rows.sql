-- +goose NO TRANSACTION
-- +goose Up

-- Rows that hold personal data, by their time. Every hour the job that removes it looks for those whose retention has ended, and read the
-- whole history. The builds wait for transactions such as a backup without blocking others.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS reservation_named;
CREATE INDEX CONCURRENTLY reservation_named ON reservation ((CASE WHEN paid_at IS NOT NULL AND coalesce(amount, 0) > 0 THEN 1 ELSE 0 END), end_at) WHERE anonymised_at IS NULL;

DROP INDEX CONCURRENTLY IF EXISTS message_named;
CREATE INDEX CONCURRENTLY message_named ON message (created_at) WHERE to_mobile <> '' OR to_email <> '';

DROP INDEX CONCURRENTLY IF EXISTS refund_with_account;
CREATE INDEX CONCURRENTLY refund_with_account ON refund (updated_at) WHERE account IS NOT NULL;

RESET lock_timeout;
