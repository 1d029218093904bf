-- +goose NO TRANSACTION
-- +goose Up

-- The stays of a guest and the cancelled ones of a day include those that partners have sold, which have no method of payment.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS reservation_of_partner_by_mobile;
CREATE INDEX CONCURRENTLY reservation_of_partner_by_mobile ON reservation (mobile_key, id) WHERE source = 'PARTNER';
DROP INDEX CONCURRENTLY IF EXISTS reservation_of_partner_canceled;
CREATE INDEX CONCURRENTLY reservation_of_partner_canceled ON reservation (branch_id, start_at) WHERE state = 'CANCELED' AND source = 'PARTNER';
RESET lock_timeout;
