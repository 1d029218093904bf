-- +goose Up

-- The keys that seal order ids, one for each day in UTC, themselves sealed. The key of a day is deleted when no order of that
-- day can be rebuilt any more; then no order id of that day can be read.
CREATE TABLE order_key (
    day    date PRIMARY KEY,
    sealed bytea NOT NULL
);
