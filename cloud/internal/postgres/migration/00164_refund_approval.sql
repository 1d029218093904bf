-- +goose Up

-- A request to record a refund by hand that waits for a second administrator: the JSON of reserve.OutsideRequest. Null when
-- nothing waits, or when an account or a part of a payment does.
ALTER TABLE refund ADD COLUMN outside_request jsonb;
