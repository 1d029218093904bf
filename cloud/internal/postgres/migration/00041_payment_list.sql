-- +goose Up
-- The list of a month's payments, newest first, and its sums.
-- Its index is built in 00062.
SELECT 1;
