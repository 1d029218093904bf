package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// wherePaid selects the payments of a branch ($1) in a span of time ($2, $3): reservations that are paid or wait for their
// deposit, by the time of the payment. It matches the index reservation_by_payment.
const wherePaid = `
		where r.branch_id = $1 and coalesce(r.paid_at, r.created_at) >= $2 and coalesce(r.paid_at, r.created_at) < $3
		  and r.method is not null and r.method <> '관리자' and r.state in ('DONE', 'WAITING_FOR_DEPOSIT', 'CANCELING', 'CANCELED') `

// whereLate selects what wherePaid does not: payments that were captured when their reservation had ended. It was never confirmed, so it has
// no method.
const whereLate = `
		where r.branch_id = $1 and coalesce(r.paid_at, r.created_at) >= $2 and coalesce(r.paid_at, r.created_at) < $3
		  and r.method is null and r.state = 'CANCELED' and r.id in (
		      select e.reservation_id from money_entry e
		      where e.branch_id = $1 and e.kind = 'paid' and e.at >= $2 and e.at < $3::timestamptz + interval '1 day') `

// somePaid selects up to a limit of the payments with a condition, in an order.
func somePaid(condition, order, limit string) string {
	return `where r.id in ((select r.id from reservation r ` + wherePaid + condition + order + limit + `)
		union all (select r.id from reservation r ` + whereLate + condition + `)) ` + order + limit
}

// PaidPlace is the position of a payment in the list of a month, from which the next page continues. It changes when a deposit arrives or is
// taken back.
type PaidPlace struct {
	At time.Time // zero: where the payment is now
	ID booking.ReservationID
}

// PlaceOf returns the position of a payment.
func PlaceOf(r booking.Reservation) PaidPlace { return PaidPlace{cmp.Or(r.PaidAt, r.CreatedAt), r.ID} }

// PaidPage returns payments, newest first, after a position (the zero value: from the newest).
func PaidPage(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval, after PaidPlace, limit int) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, somePaid(`
		  and ($4::bigint = 0 or (coalesce(r.paid_at, r.created_at), r.id) <
		      (coalesce($5::timestamptz, (select coalesce(paid_at, created_at) from reservation where id = $4)), $4))`,
		` order by coalesce(r.paid_at, r.created_at) desc, r.id desc`, ` limit $6`), branch, span.Start, span.End, after.ID, null(after.At), limit)
}

// PaidReservation is a payment with the money that came in and went out.
type PaidReservation struct {
	booking.Reservation
	Received, Returned int // won
}

// paidAtOnce is how many payments EachPaid reads at once.
const paidAtOnce = 1000

// EachPaid calls do for each payment, oldest first. A payment without an entry in the books, from before there were books, counts
// by its state. No connection is in use while do runs: it may wait for a client that reads slowly.
func EachPaid(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval, do func(PaidReservation) error) error {
	after := PaidPlace{At: span.Start}
	for {
		page, err := manyReservations(ctx, q, somePaid(`and (coalesce(r.paid_at, r.created_at), r.id) > ($4, $5)`,
			` order by coalesce(r.paid_at, r.created_at), r.id`, ` limit $6`),
			branch, span.Start, span.End, after.At, after.ID, paidAtOnce)
		if err != nil || len(page) == 0 {
			return err
		}
		moved, err := movedMoney(ctx, q, page)
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := do(moved.of(r)); err != nil {
				return err
			}
		}
		after = PlaceOf(page[len(page)-1])
	}
}

// movements are the won that the books have per reservation: received and returned.
type movements map[booking.ReservationID][2]int

func movedMoney(ctx context.Context, q Querier, of []booking.Reservation) (movements, error) {
	ids := make([]booking.ReservationID, len(of))
	for i, r := range of {
		ids[i] = r.ID
	}
	rows, err := q.Query(ctx, `
		select reservation_id, coalesce(sum(won) filter (where kind = 'paid'), 0), coalesce(-sum(won) filter (where kind <> 'paid'), 0)
		from money_entry where reservation_id = any($1) group by reservation_id`, ids)
	if err != nil {
		return nil, err
	}
	moved := movements{}
	var id booking.ReservationID
	var in, out int
	_, err = pgx.ForEachRow(rows, []any{&id, &in, &out}, func() error {
		moved[id] = [2]int{in, out}
		return nil
	})
	return moved, err
}

func (m movements) of(r booking.Reservation) PaidReservation {
	if won, ok := m[r.ID]; ok {
		return PaidReservation{r, won[0], won[1]}
	}
	paid := PaidReservation{Reservation: r}
	if !r.PaidAt.IsZero() {
		paid.Received = r.Amount
	}
	if r.State == booking.Canceled {
		paid.Returned = paid.Received
	}
	return paid
}

// PaidSum is the number and the total of the payments of one day, method and state.
type PaidSum struct {
	Day    string // YYYY-MM-DD, local to the branch
	Method booking.Method
	State  booking.State
	Count  int
	Amount int64
}

// PaidSums sums payments in the database, so that the totals do not depend on page limits. An account that ended without a deposit
// is none.
func PaidSums(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval, zone string) ([]PaidSum, error) {
	rows, err := q.Query(ctx, `
		select to_char(day, 'YYYY-MM-DD'), method, state, number, amount from (
			select (coalesce(r.paid_at, r.created_at) at time zone $4)::date as day, coalesce(r.method, '') as method, r.state, count(*) as number, sum(r.amount) as amount
			from (select * from reservation r `+wherePaid+` union all select * from reservation r `+whereLate+`) r
			where (r.state = 'WAITING_FOR_DEPOSIT' or r.paid_at is not null or exists (select from money_entry e where e.reservation_id = r.id and e.kind = 'paid'))
			group by 1, 2, 3
		) sums order by 1, 2, 3`, branch, span.Start, span.End, zone)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[PaidSum])
}

// RefundRow is a refund as listed in the console.
type RefundRow struct {
	ID           int64
	Reservation  booking.ReservationID
	State        money.RefundState
	Amount       int
	By           string
	Reason       string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	ErrorCode    *string
	ErrorMessage *string
	DueAt        *time.Time
	Account      *string         // masked
	AccountBy    *string         // who entered an account that another administrator has to approve
	Outside      json.RawMessage // how an administrator refunded it outside the provider; nil: by the provider
}

// selectRefunds reads the columns of a RefundRow, in their order.
const selectRefunds = `
	select f.id, f.reservation_id, f.state, f.amount, f.requested_by, f.reason, f.created_at, f.updated_at, f.error_code, f.error_message,
	       f.due_at, f.account_summary, f.account_by, f.settled_outside
	from refund f join reservation r on r.id = f.reservation_id`

// OpenRefunds returns the unfinished refunds of a branch, failed ones first.
func OpenRefunds(ctx context.Context, q Querier, branch booking.BranchID) ([]RefundRow, error) {
	rows, err := q.Query(ctx, selectRefunds+`
		where r.branch_id = $1 and f.state in ('REQUESTED', 'PENDING', 'FAILED')
		order by (f.state = 'FAILED') desc, f.id desc limit 500`, branch)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[RefundRow])
}

// DiscrepanciesOf returns the discrepancies about orders of a branch, open ones first. If unknown is set, it includes those
// about orders that do not exist here.
func DiscrepanciesOf(ctx context.Context, q Querier, branch booking.BranchID, unknown bool) ([]money.Discrepancy, error) {
	rows, err := q.Query(ctx, `
		select d.id, d.found_at, d.order_id, d.kind, d.detail, d.resolved_at, coalesce(d.resolution, '')
		from reconciliation_difference d left join reservation r on r.id = discrepancy_reservation(d.order_id)
		where r.branch_id = $1 or $2 and r.id is null
		order by (d.resolved_at is null) desc, d.id desc limit 500`, branch, unknown)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d money.Discrepancy, err error) {
		var resolved *time.Time
		err = row.Scan(&d.ID, &d.FoundAt, &d.OrderID, &d.Kind, &d.Detail, &resolved, &d.Resolution)
		d.ResolvedAt = value(resolved)
		return d, err
	})
}

// ErrNoDiscrepancy is returned if no open discrepancy has that id.
var ErrNoDiscrepancy = errors.New("postgres: no such open difference")

// ResolveDiscrepancy records how an administrator resolved a discrepancy, or returns ErrNoDiscrepancy.
func ResolveDiscrepancy(ctx context.Context, q Querier, id int64, resolution, by string, now time.Time) error {
	tag, err := q.Exec(ctx, `
		update reconciliation_difference set resolved_at = $2, resolution = $3, resolved_by = $4 where id = $1 and resolved_at is null`, id, now, resolution, by)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoDiscrepancy
	}
	return err
}

// RefundsDuring returns the refunds of a branch that moved money within a span of time, newest first, at most limit.
func RefundsDuring(ctx context.Context, q Querier, branch booking.BranchID, span booking.Interval, limit int) ([]RefundRow, error) {
	rows, err := q.Query(ctx, selectRefunds+`
		where r.branch_id = $1 and f.state = 'COMPLETED' and f.amount > 0 and f.updated_at >= $2 and f.updated_at < $3
		order by f.updated_at desc, f.id desc limit $4`, branch, span.Start, span.End, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[RefundRow])
}
