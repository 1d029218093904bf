-- +goose Up

-- What the provider deducts from each movement of money, and when it pays out, from its settlement list.
CREATE TABLE settlement (
    transaction_key text        PRIMARY KEY,
    order_id        text        NOT NULL,
    method          text        NOT NULL,
    amount          integer     NOT NULL,   -- won; negative: a cancellation
    fee             integer     NOT NULL,   -- without VAT
    vat             integer     NOT NULL,
    pay_out         integer     NOT NULL,
    sold_on         date        NOT NULL,
    paid_out_on     date,
    read_at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX settlement_by_day ON settlement (sold_on);
CREATE INDEX settlement_by_order ON settlement (order_id);
