package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// DeskItem is money that waits for a person, or that a person should know about.
type DeskItem struct {
	Kind        string // DeskQueue names them
	Branch      string // empty: of no branch
	Reservation booking.ReservationID
	OrderID     string
	Refund      int64 // 0: the item is a discrepancy
	Discrepancy int64 // 0: the item is a refund
	Amount      int   // won; 0: not known
	Since       time.Time
	DueAt       *time.Time // when the bank has to have transferred it
	Detail      string
	Account     *string // masked
}

// DeskQueue returns the open items of branches (nil: of all, and those of no branch), the oldest first. A refund is failed,
// late (money that came too late and waits for an account), name-mismatch or approval (it waits for a second administrator),
// pending (at the bank) or unclear (no answer since unclearAt). A discrepancy is refused, orphan, unclear, late, reversal,
// entered-after-refund, or difference; one about an open refund is not listed beside it. A cash receipt that failed or has no
// answer since unclearAt is cash-receipt.
func DeskQueue(ctx context.Context, q Querier, branches []string, unclearAt time.Time, limit int) ([]DeskItem, error) {
	rows, err := q.Query(ctx, `
		select * from (
			select case when f.outside_request is not null then 'approval'
			            when f.state = 'PENDING' then 'pending'
			            when f.state = 'REQUESTED' then 'unclear'
			            when f.account_by is not null and f.error_code = 'APPROVAL_REQUIRED' then 'name-mismatch'
			            when f.account_by is not null then 'approval'
			            when f.requested_by in ('system:late', 'system:abandoned', 'system:too-late') then 'late'
			            else 'failed' end as kind,
			       b.code, r.id, coalesce(r.order_id, ''), f.id as refund, 0::bigint as difference, coalesce((f.outside_request ->> 'Amount')::int, f.amount), f.created_at as since, f.due_at,
			       concat_ws(' ', f.error_code, f.error_message, f.account_by, f.outside_request ->> 'How', f.outside_request ->> 'Reference'), nullif(f.account_summary, '')
			from refund f join reservation r on r.id = f.reservation_id join branch b on b.id = r.branch_id
			where (f.state in ('PENDING', 'FAILED') or f.state = 'REQUESTED' and (coalesce(f.requested_at, f.created_at) < $2 or f.outside_request is not null)) and ($1::text[] is null or b.code = any($1))
			union all
			select case d.kind when 'orphan' then 'orphan' when 'refund-refused' then 'refused' when 'stuck' then 'unclear'
			            when 'late-deposit' then 'late' when 'reversal' then 'reversal' when 'entered-after-refund' then 'entered-after-refund'
			            else 'difference' end,
			       coalesce(b.code, ''), coalesce(r.id, 0), d.order_id, 0, d.id, coalesce(r.amount, 0), d.found_at, null, d.detail, null
			from reconciliation_difference d left join reservation r on r.id = discrepancy_reservation(d.order_id) left join branch b on b.id = r.branch_id
			where d.resolved_at is null and ($1::text[] is null or b.code = any($1))
			  and not (d.kind in ('refund', 'refund-overdue', 'late-deposit', 'stuck', 'balance') and exists (
			      select from refund f where f.reservation_id = r.id and (f.state in ('PENDING', 'FAILED') or f.state = 'REQUESTED' and coalesce(f.requested_at, f.created_at) < $2)))
			union all
			select 'cash-receipt', b.code, r.id, coalesce(r.order_id, ''), 0, 0, coalesce(nullif(c.standing, 0), c.amount), c.requested_at, null,
			       concat_ws(' ', c.error_code, c.error_message), c.masked
			from cash_receipt c join reservation r on r.id = c.reservation_id join branch b on b.id = r.branch_id
			where (c.state = 'failed' or c.state in ('issuing', 'canceling') and c.requested_at < $2) and ($1::text[] is null or b.code = any($1))
		) item order by since, refund, difference limit $3`, branches, unclearAt, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DeskItem])
}

// OrphanOrder returns the order, the key set and the payment key of an open discrepancy of the kind orphan, or ErrNoDiscrepancy. Earlier
// releases stored no keys.
func OrphanOrder(ctx context.Context, q Querier, id int64) (d money.Discrepancy, err error) {
	err = q.QueryRow(ctx, `
		select d.order_id, coalesce(d.key_set, ''), coalesce(d.payment_key, '') from reconciliation_difference d
		where d.id = $1 and d.kind = 'orphan' and d.resolved_at is null
		  and not exists (select from reservation r join payment p on p.reservation_id = r.id where r.order_id = d.order_id)`, id).Scan(&d.OrderID, &d.KeySet, &d.PaymentKey)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoDiscrepancy
	}
	return d, err
}
