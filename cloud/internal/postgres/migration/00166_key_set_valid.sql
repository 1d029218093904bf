-- +goose NO TRANSACTION
-- +goose Up

-- The check of 00165 for the rows that existed, without blocking reads or writes of payments.
SET lock_timeout = 0;

ALTER TABLE payment VALIDATE CONSTRAINT payment_key_set_check;

RESET lock_timeout;
