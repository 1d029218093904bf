package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/money"
)

// ReportDiscrepancy stores a discrepancy between the provider's books and ours, once per order and kind. It returns false if
// it is already stored. A discrepancy that was closed automatically is reopened; one that an administrator resolved is
// reopened only if it has changed.
func ReportDiscrepancy(ctx context.Context, q Querier, d money.Discrepancy) (bool, error) {
	tag, err := q.Exec(ctx, `
		insert into reconciliation_difference as d (order_id, kind, detail, key_set, payment_key) values ($1, $2, $3, $4, $5)
		on conflict (order_id, kind) do update
		set detail = excluded.detail, key_set = coalesce(excluded.key_set, d.key_set), payment_key = coalesce(excluded.payment_key, d.payment_key), found_at = excluded.found_at, resolved_at = null, resolution = null, resolved_by = null
		where d.resolved_at is not null and (d.resolved_by is null or d.detail <> excluded.detail)`, d.OrderID, d.Kind, d.Detail, null(d.KeySet), null(d.PaymentKey))
	return tag.RowsAffected() == 1, err
}

// ResolveDiscrepancies closes the discrepancies of a kind about the compared orders, except the orders in still. compared is
// nil for all orders.
func ResolveDiscrepancies(ctx context.Context, q Querier, kind string, compared, still []string, resolution string, now time.Time) error {
	_, err := q.Exec(ctx, `
		update reconciliation_difference set resolved_at = $4, resolution = $3
		where kind = $1 and resolved_at is null and order_id <> all($2) and ($5::text[] is null or order_id = any($5))`,
		kind, still, resolution, now, compared)
	return err
}

// SettleDiscrepancy closes the discrepancy of a kind about an order, if there is one.
func SettleDiscrepancy(ctx context.Context, q Querier, orderID, kind, resolution string, now time.Time) error {
	_, err := q.Exec(ctx, `
		update reconciliation_difference set resolved_at = $4, resolution = $3
		where order_id = $1 and kind = $2 and resolved_at is null`, orderID, kind, resolution, now)
	return err
}

// ProviderBalances returns, by order id, the balance that the provider should hold, for the given orders and for all that
// were paid since a time.
func ProviderBalances(ctx context.Context, q Querier, orders []string, since time.Time) (map[string]money.ProviderBalance, error) {
	rows, err := q.Query(ctx, `
		select r.order_id, r.id, p.key_set,
		       case when r.paid_at is not null and r.state in ('DONE', 'CANCELING')
		            then r.amount - case when p.provider_status in ('DONE', 'PARTIAL_CANCELED', 'CANCELED') then coalesce(p.total_amount - p.balance_amount, 0) else 0 end
		            when p.settled_outside > 0 or p.retained > 0 then coalesce(p.balance_amount, 0) else 0 end,
		       r.state = 'CANCELING' or r.id in (`+unsettled+`)
		         or r.state = 'CANCELED' and exists (select from refund f where f.reservation_id = r.id and f.state = 'FAILED')
		from reservation r join payment p on p.reservation_id = r.id
		where r.order_id = any($1) or r.paid_at > $2`, orders, since)
	if err != nil {
		return nil, err
	}
	held := map[string]money.ProviderBalance{}
	var (
		order string
		h     money.ProviderBalance
	)
	_, err = pgx.ForEachRow(rows, []any{&order, &h.Reservation, &h.KeySet, &h.Won, &h.Open}, func() error {
		held[order] = h
		return nil
	})
	return held, err
}
