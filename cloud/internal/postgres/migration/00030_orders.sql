-- +goose Up

-- Every order that was ever registered for a hold. A reservation row carries one order at a time, in order_id; when a
-- guest registers again, an order whose payment was attempted moves, with its payment, to a released row of its own, so
-- that the sweep, callbacks and refunds keep finding it.
CREATE TABLE orders (
    order_id       text        PRIMARY KEY,
    purchase_id    bigint      NOT NULL REFERENCES reservation,  -- the hold that it was registered for
    reservation_id bigint      NOT NULL REFERENCES reservation,  -- the row that carries it and its payment
    amount         integer     NOT NULL CHECK (amount >= 0),
    created_at     timestamptz NOT NULL DEFAULT now(),
    replaced_at    timestamptz,     -- another order took its place
    abandoned_at   timestamptz,     -- the guest left while the outcome was unclear: never charge, refund what was captured
    pending_at     timestamptz      -- the guest got "pending" for an answer and is owed a message about the outcome
);
CREATE INDEX orders_by_purchase ON orders (purchase_id);

INSERT INTO orders (order_id, purchase_id, reservation_id, amount, created_at)
SELECT order_id, id, id, coalesce(amount, 0), created_at FROM reservation WHERE order_id IS NOT NULL;

-- No charge of this attempt can arrive any more: the provider was asked after its payment session had ended.
ALTER TABLE payment ADD COLUMN closed_at timestamptz;

-- A refusal by the provider extends a hold at most once.
ALTER TABLE reservation ADD COLUMN hold_extended boolean NOT NULL DEFAULT false;
