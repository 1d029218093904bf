-- +goose NO TRANSACTION
-- +goose Up

-- The history of a reservation read every refund, and the sweep read every callback to find those that are kept no longer. The builds wait for
-- transactions such as a backup without blocking others.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS refund_by_reservation;
CREATE INDEX CONCURRENTLY refund_by_reservation ON refund (reservation_id);

DROP INDEX CONCURRENTLY IF EXISTS webhook_applied;
CREATE INDEX CONCURRENTLY webhook_applied ON webhook_event (applied_at) WHERE applied_at IS NOT NULL;

RESET lock_timeout;
