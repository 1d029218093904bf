package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// BookEntry stores a movement of money, once per source.
func BookEntry(ctx context.Context, tx pgx.Tx, e money.Entry) error {
	_, err := tx.Exec(ctx, `
		insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
		select $1, r.id, r.branch_id, $3, $4, $5, $6 from reservation r where r.id = $2
		on conflict (source) do nothing`, e.Source, e.Reservation, e.OrderID, e.Kind, e.Won, e.At)
	return err
}

// CountDeposits counts the booked captures of a reservation, and those that the bank reversed.
func CountDeposits(ctx context.Context, q Querier, id booking.ReservationID) (captures, reversals int, err error) {
	err = q.QueryRow(ctx, `
		select count(*) filter (where kind = 'paid'), count(*) filter (where kind = 'reversed')
		from money_entry where reservation_id = $1`, id).Scan(&captures, &reversals)
	return captures, reversals, err
}

// MoneyTotals sums the movements of a branch within a span of time.
func MoneyTotals(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval) (t money.Totals, err error) {
	err = q.QueryRow(ctx, `
		select coalesce(sum(won) filter (where kind = 'paid'), 0), coalesce(-sum(won) filter (where kind in ('refunded', 'rejected')), 0),
		       coalesce(-sum(won) filter (where kind = 'reversed'), 0), coalesce(-sum(won) filter (where kind = 'outside'), 0)
		from money_entry where branch_id = $1 and at >= $2 and at < $3`, branch, span.Start, span.End).
		Scan(&t.Paid, &t.Refunded, &t.Reversed, &t.Outside)
	return t, err
}

// BeginReconciliation records the start of a comparison with the provider's books, and returns its id.
func BeginReconciliation(ctx context.Context, q Querier, kind string, now time.Time) (id int64, err error) {
	err = q.QueryRow(ctx, `insert into reconciliation_run (kind, began_at) values ($1, $2) returning id`, kind, now).Scan(&id)
	return id, err
}

// EndReconciliation records the result of a comparison, which is complete if no order failed.
func EndReconciliation(ctx context.Context, q Querier, id int64, compared int, failed []string, now time.Time) error {
	_, err := q.Exec(ctx, `
		update reconciliation_run set compared = $2, failed = $3, completed_at = case when cardinality($3::text[]) = 0 then $4::timestamptz end
		where id = $1`, id, compared, failed, now)
	return err
}

// LastReconciliation returns when the last comparison of a kind began, and when the last complete one ended; zero: never.
func LastReconciliation(ctx context.Context, q Querier, kind string) (began, completed time.Time, err error) {
	var b, c *time.Time
	err = q.QueryRow(ctx, `select max(began_at), max(completed_at) from reconciliation_run where kind = $1`, kind).Scan(&b, &c)
	return value(b), value(c), err
}

// PurgeReconciliations deletes the records of comparisons that began before a time.
func PurgeReconciliations(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `delete from reconciliation_run where began_at < $1`, before)
	return err
}
