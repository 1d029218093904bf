package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// ErrNoReceipt is returned if a reservation has no cash receipt, or none with a step that is due.
var ErrNoReceipt = errors.New("postgres: no such cash receipt")

// receiptDue is the won of the cash that the shop keeps for reservation r with payment p, for which receipt c should stand:
// nothing before a deposit or if it came too late, and no change while a confirmation or cancellation is in progress.
const receiptDue = `case when r.state in ('CONFIRMING', 'CANCELING') then c.standing
	when r.method = '가상계좌' and r.paid_at is not null
	then greatest(0, case when p.provider_status in ('DONE', 'PARTIAL_CANCELED') then p.balance_amount else 0 end + p.rejected - p.settled_outside) else 0 end`

const selectReceipt = `
	select c.reservation_id, c.type, c.number, coalesce(c.masked, ''), c.state, c.sequence, c.attempt, c.amount, c.standing, coalesce(c.receipt_key, ''),
	       coalesce(c.issue_number, ''), coalesce(c.url, ''), coalesce(c.error_code, ''), coalesce(c.error_message, ''), c.requested_at, c.sent_at, c.checks, ` + receiptDue + `
	from cash_receipt c join reservation r on r.id = c.reservation_id left join payment p on p.reservation_id = r.id `

func scanReceipt(row pgx.CollectableRow) (c money.CashReceipt, err error) {
	var requested, sent *time.Time
	err = row.Scan(&c.Reservation, &c.Type, &c.Number, &c.Masked, &c.State, &c.Sequence, &c.Attempt, &c.Amount, &c.Standing, &c.Key,
		&c.IssueNumber, &c.URL, &c.ErrorCode, &c.ErrorMessage, &requested, &sent, &c.Checks, &c.Due)
	c.RequestedAt, c.SentAt = value(requested), value(sent)
	return c, err
}

// CashReceiptsOf returns the cash receipts of reservations by id.
func CashReceiptsOf(ctx context.Context, q Querier, ids ...booking.ReservationID) (map[booking.ReservationID]money.CashReceipt, error) {
	rows, err := q.Query(ctx, selectReceipt+`where c.reservation_id = any($1)`, ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanReceipt)
	byID := make(map[booking.ReservationID]money.CashReceipt, len(list))
	for _, c := range list {
		byID[c.Reservation] = c
	}
	return byID, err
}

// LockReceipt locks and returns the cash receipt of a reservation, or ErrNoReceipt.
func LockReceipt(ctx context.Context, tx pgx.Tx, id booking.ReservationID) (money.CashReceipt, error) {
	return lockReceipt(ctx, tx, id, `where c.reservation_id = $1`, id)
}

// LockDueReceipt locks and returns the cash receipt of a reservation if its next step is due, otherwise ErrNoReceipt.
func LockDueReceipt(ctx context.Context, tx pgx.Tx, id booking.ReservationID, now time.Time) (money.CashReceipt, error) {
	return lockReceipt(ctx, tx, id, `where c.reservation_id = $1 and c.check_at <= $2`, id, now)
}

// lockReceipt reads by a statement of its own: one that waits for a refund would compare the receipt with the payment before it.
func lockReceipt(ctx context.Context, tx pgx.Tx, id booking.ReservationID, where string, args ...any) (money.CashReceipt, error) {
	if _, err := tx.Exec(ctx, `select from cash_receipt where reservation_id = $1 for update`, id); err != nil {
		return money.CashReceipt{}, err
	}
	rows, err := tx.Query(ctx, selectReceipt+where, args...)
	if err != nil {
		return money.CashReceipt{}, err
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanReceipt)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoReceipt
	}
	return c, err
}

// WishReceipt stores the cash receipt that a guest wants; without a type, that the guest wants none.
func WishReceipt(ctx context.Context, tx pgx.Tx, id booking.ReservationID, c money.CashReceipt) error {
	if _, err := tx.Exec(ctx, `delete from cash_receipt where reservation_id = $1`, id); err != nil || c.Type == "" {
		return err
	}
	_, err := tx.Exec(ctx, `insert into cash_receipt (reservation_id, type, number, masked) values ($1, $2, $3, $4)`, id, c.Type, c.Number, null(c.Masked))
	return err
}

// PutReceipt stores the progress of a locked cash receipt and when its next step is due; zero: none.
func PutReceipt(ctx context.Context, tx pgx.Tx, c money.CashReceipt, next, now time.Time) error {
	_, err := tx.Exec(ctx, `
		update cash_receipt set type = $2, number = $3, masked = $4, state = $5, sequence = $6, attempt = $7, amount = $8, standing = $9, receipt_key = $10,
		       issue_number = $11, url = $12, error_code = $13, error_message = $14, requested_at = $15, sent_at = $16, checks = $17, check_at = $18, updated_at = $19
		where reservation_id = $1`,
		c.Reservation, c.Type, c.Number, null(c.Masked), c.State, c.Sequence, c.Attempt, c.Amount, c.Standing, null(c.Key),
		null(c.IssueNumber), null(c.URL), null(c.ErrorCode), null(c.ErrorMessage), null(c.RequestedAt), null(c.SentAt), c.Checks, null(next), now)
	return err
}

// EndReceipt records that an administrator has issued or canceled a cash receipt by hand, so that one stands for the cash that is due.
func EndReceipt(ctx context.Context, tx pgx.Tx, c money.CashReceipt, outside map[string]string, now time.Time) error {
	_, err := tx.Exec(ctx, `
		update cash_receipt set state = 'outside', outside = $2, amount = $3, standing = $3, receipt_key = null, check_at = null, updated_at = $4
		where reservation_id = $1`, c.Reservation, outside, c.Due, now)
	return err
}

// WakeReceipt makes the next step of a reservation's cash receipt due now if the kept cash is not the amount of the receipt. It
// reports whether there is a step.
func WakeReceipt(ctx context.Context, tx pgx.Tx, id booking.ReservationID, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		update cash_receipt c set check_at = $2 from reservation r left join payment p on p.reservation_id = r.id
		where c.reservation_id = $1 and r.id = c.reservation_id and c.state in ('requested', 'issued', 'completed', 'canceled', 'failed', 'outside')
		  and (c.standing <> `+receiptDue+` or c.state = 'failed')`, id, now)
	return tag.RowsAffected() == 1, err
}

// DueReceipts returns the reservations whose cash receipt has a step that is due, the longest waiting first.
func DueReceipts(ctx context.Context, q Querier, now time.Time, limit int) ([]booking.ReservationID, error) {
	rows, err := q.Query(ctx, `select reservation_id from cash_receipt where check_at <= $1 order by check_at limit $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
}
