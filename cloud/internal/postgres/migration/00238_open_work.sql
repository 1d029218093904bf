-- +goose NO TRANSACTION
-- +goose Up

-- Without indexes of their own, the sweep read all payments that were ever made to find the attempts that may still charge, and all
-- rooms listed at a partner to find those with a calendar; the console read all refunds to list those of a month. A charge closes its
-- attempt from now on. Those of the last week before this migration stay in the index until they are too old to be watched.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS payment_open;
CREATE INDEX CONCURRENTLY payment_open ON payment (attempted_at) WHERE closed_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS payment_due; -- contained all payments
DROP INDEX CONCURRENTLY IF EXISTS refund_by_completion;
CREATE INDEX CONCURRENTLY refund_by_completion ON refund (updated_at, id) WHERE state = 'COMPLETED' AND amount > 0;
DROP INDEX CONCURRENTLY IF EXISTS channel_listing_with_calendar;
CREATE INDEX CONCURRENTLY channel_listing_with_calendar ON channel_listing (id) WHERE feed_sealed IS NOT NULL OR feed_url <> '';
RESET lock_timeout;
