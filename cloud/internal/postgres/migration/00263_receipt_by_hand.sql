-- +goose Up

-- The won of a cash receipt that an administrator has issued or canceled by hand, so that a later refund is noticed.
UPDATE cash_receipt c SET amount = due.won, standing = due.won, receipt_key = NULL
FROM (
    SELECT r.id, CASE WHEN r.method = '가상계좌' AND r.paid_at IS NOT NULL AND p.provider_status IN ('DONE', 'PARTIAL_CANCELED')
                      THEN coalesce(p.balance_amount, 0) - p.settled_outside ELSE 0 END AS won
    FROM reservation r LEFT JOIN payment p ON p.reservation_id = r.id
) due
WHERE due.id = c.reservation_id AND c.state = 'outside';
