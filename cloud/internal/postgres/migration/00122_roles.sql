-- +goose Up

ALTER TABLE administrator DROP CONSTRAINT administrator_role_check;
ALTER TABLE administrator ADD CONSTRAINT administrator_role_check
    CHECK (role IN ('hq', 'manager', 'viewer', 'front-desk', 'accountant', 'cleaner'));
