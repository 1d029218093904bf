-- +goose Up
-- Which version of the terms and the privacy policy the guest agreed to, and when.
ALTER TABLE reservation
    ADD COLUMN consent_version text,
    ADD COLUMN consent_at      timestamptz;
