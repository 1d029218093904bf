-- +goose NO TRANSACTION
-- +goose Up

-- Won of transfers that the bank rejected and that an administrator has settled outside the provider. They are not in the balance, so they
-- do not count twice.
ALTER TABLE payment ADD COLUMN IF NOT EXISTS rejected integer NOT NULL DEFAULT 0;
UPDATE payment p SET rejected = least(p.settled_outside, gone.won)
FROM (
    SELECT p.reservation_id AS id, p.total_amount - p.balance_amount - coalesce(sum(f.amount) FILTER (WHERE f.state = 'COMPLETED' AND f.settled_outside IS NULL), 0) AS won
    FROM payment p LEFT JOIN refund f ON f.reservation_id = p.reservation_id
    WHERE p.settled_outside > 0 AND p.account_number IS NOT NULL GROUP BY p.reservation_id
) gone
WHERE gone.id = p.reservation_id AND gone.won > 0;
