-- +goose Up

-- The payment of an orphan as the provider's transactions name it. Its look-up by the order id may return another payment of the order.
ALTER TABLE reconciliation_difference ADD COLUMN payment_key text;
