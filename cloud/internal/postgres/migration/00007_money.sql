-- +goose Up

-- How many answers of the provider were acted on. An answer is acted on only if no other one was since its question
-- was asked: a late "waiting" must not undo the "done" that overtook it.
ALTER TABLE payment ADD COLUMN answers integer NOT NULL DEFAULT 0;

-- When to ask the provider next is said in one place, payment.check_at.
DROP INDEX refund_due;
ALTER TABLE refund DROP COLUMN next_at;

CREATE INDEX payment_due ON payment (check_at);
CREATE INDEX webhook_by_order ON webhook_event (order_id, id);

-- Attempts of which nobody knows whether they reached the person: two at most.
ALTER TABLE message ADD COLUMN doubtful integer NOT NULL DEFAULT 0;
