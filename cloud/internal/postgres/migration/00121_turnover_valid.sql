-- +goose NO TRANSACTION
-- +goose Up

-- The check of 00120 for the rows that existed, without blocking reads or writes of reservations.
SET lock_timeout = 0;

ALTER TABLE reservation VALIDATE CONSTRAINT reservation_turnover;

RESET lock_timeout;
