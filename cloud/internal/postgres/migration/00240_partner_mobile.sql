-- +goose Up

-- The phone number that the partner reported last. A number that it reports anew replaces the guest's, one that staff corrected stays.
ALTER TABLE partner_booking ADD COLUMN mobile text;
