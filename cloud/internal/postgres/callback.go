package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// SaveCallback stores a callback and returns its id, or 0 if it is already stored.
func SaveCallback(ctx context.Context, q Querier, c money.Callback) (int64, error) {
	rows, err := q.Query(ctx, `
		insert into webhook_event (transmission_id, order_id, status)
		select $1, $2, $3
		where not ($4 and exists (select from webhook_event where order_id = $2 and status = $3 and applied_at is null))
		on conflict do nothing returning id`,
		c.TransmissionID, c.OrderID, c.Status, c.Unsigned)
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if len(ids) == 0 {
		return 0, err
	}
	return ids[0], err
}

// ClaimCallbackLookUp reports whether a callback without a signature may cause a query to the provider about a payment: at
// most one per interval.
func ClaimCallbackLookUp(ctx context.Context, q Querier, id booking.ReservationID, now time.Time, interval time.Duration) (bool, error) {
	tag, err := q.Exec(ctx, `
		update payment set callback_look_up_at = $2
		where reservation_id = $1 and (callback_look_up_at is null or callback_look_up_at <= $3)`, id, now, now.Add(-interval))
	return tag.RowsAffected() == 1, err
}

// LastCallback returns the id of the latest callback about an order, 0 if there is none.
func LastCallback(ctx context.Context, q Querier, orderID string) (id int64, err error) {
	err = q.QueryRow(ctx, `select coalesce(max(id), 0) from webhook_event where order_id = $1`, orderID).Scan(&id)
	return id, err
}

// MarkCallbacksApplied closes the callbacks of an order up to last, which was stored before the provider was queried: the
// response covers them.
func MarkCallbacksApplied(ctx context.Context, q Querier, orderID string, last int64, now time.Time) error {
	_, err := q.Exec(ctx, `
		update webhook_event set applied_at = $3 where order_id = $1 and id <= $2 and applied_at is null`, orderID, last, now)
	return err
}

// CallbackApplied reports whether a callback has been applied.
func CallbackApplied(ctx context.Context, q Querier, id int64) (applied bool, err error) {
	err = q.QueryRow(ctx, `select applied_at is not null from webhook_event where id = $1`, id).Scan(&applied)
	return applied, err
}

// UnappliedOrders returns the orders with unapplied callbacks, and the latest callback of each.
func UnappliedOrders(ctx context.Context, q Querier, limit int) (map[string]int64, error) {
	rows, err := q.Query(ctx, `
		select order_id, max(id) from webhook_event where applied_at is null
		group by order_id order by min(received_at) limit $1`, limit)
	if err != nil {
		return nil, err
	}
	last := map[string]int64{}
	var (
		order string
		id    int64
	)
	_, err = pgx.ForEachRow(rows, []any{&order, &id}, func() error {
		last[order] = id
		return nil
	})
	return last, err
}

// PurgeCallbacks deletes applied callbacks that the provider no longer repeats.
func PurgeCallbacks(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `
		delete from webhook_event where id in (
		    select id from webhook_event where applied_at < $1 order by id limit 1000)`, before)
	return err
}
