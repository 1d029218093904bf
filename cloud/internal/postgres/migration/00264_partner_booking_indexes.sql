-- +goose NO TRANSACTION
-- +goose Up

-- Without these indexes, each calendar that is imported, each move of a stay and, while a partner's booking is in conflict, the sweep every
-- 30 seconds read all bookings that partners have ever reported.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS partner_booking_by_reservation;
CREATE INDEX CONCURRENTLY partner_booking_by_reservation ON partner_booking (reservation_id);
DROP INDEX CONCURRENTLY IF EXISTS partner_booking_by_listing;
CREATE INDEX CONCURRENTLY partner_booking_by_listing ON partner_booking (listing_id, end_at);

-- Compensations that wait for another refund are few, and are looked for every 30 seconds.
DROP INDEX CONCURRENTLY IF EXISTS compensation_owed;
CREATE INDEX CONCURRENTLY compensation_owed ON compensation (reservation_id) WHERE reason = 'everything is owed';
RESET lock_timeout;
