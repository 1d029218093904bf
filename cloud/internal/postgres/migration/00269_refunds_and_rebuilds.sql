-- +goose NO TRANSACTION
-- +goose Up

-- When a refund that had failed was requested again; null: it has been requested once. An administrator may return the money by hand
-- once this request has been without an answer for long enough.
ALTER TABLE refund ADD COLUMN IF NOT EXISTS requested_at timestamptz;
