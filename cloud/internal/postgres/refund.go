package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// ErrNoRefund is returned if there is no such refund, or none in progress.
var ErrNoRefund = errors.New("postgres: no such refund")

// OpenRefund stores a refund before any request is sent to the provider. The won of one that keeps the stay counts as
// returned from then on, so that the refunds of a payment never exceed it.
func OpenRefund(ctx context.Context, tx pgx.Tx, f money.Refund) (int64, error) {
	var id int64
	err := tx.QueryRow(ctx, `
		insert into refund (reservation_id, state, reason, amount, requested_by, account, key_revoked, revoked_key, idempotency_key, keeps_stay, part, policy_at, extension_account)
		values ($1, 'REQUESTED', $2, $3, $4, $5, $6,
		        (select coalesce(doorlock_key, blocked_key) from reservation where id = $1 and $6), $7, $8, $9, $10, $11) returning id`,
		f.Reservation, f.Reason, f.Amount, f.By, f.Account, f.KeyRevoked, f.IdempotencyKey, f.KeepsStay, f.Part, null(f.PolicyAt), f.ExtensionAccount).Scan(&id)
	if err != nil || !f.KeepsStay {
		return id, err
	}
	return id, CountReturned(ctx, tx, f.Reservation, f.Amount)
}

// CurrentRefund returns the refund of a reservation that is not closed, or ErrNoRefund.
func CurrentRefund(ctx context.Context, q Querier, id booking.ReservationID) (money.Refund, error) {
	return oneRefund(ctx, q, `where reservation_id = $1 and state not in ('COMPLETED', 'REFUSED')`, id)
}

// CurrentRefunds returns the refunds of reservations that are not closed, by reservation.
func CurrentRefunds(ctx context.Context, q Querier, ids []booking.ReservationID) (map[booking.ReservationID]money.Refund, error) {
	rows, err := q.Query(ctx, selectRefund+`where reservation_id = any($1) and state not in ('COMPLETED', 'REFUSED')`, ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanRefund)
	byID := make(map[booking.ReservationID]money.Refund, len(list))
	for _, f := range list {
		byID[f.Reservation] = f
	}
	return byID, err
}

// RefundByID returns a refund in any state, or ErrNoRefund.
func RefundByID(ctx context.Context, q Querier, id int64) (money.Refund, error) {
	return oneRefund(ctx, q, `where id = $1`, id)
}

const selectRefund = `
		select id, reservation_id, state, reason, amount, requested_by, account, key_revoked or revoked_key is not null, idempotency_key, attempt, error_code, error_message, coalesce(requested_at, created_at), due_at, account_by,
		       keeps_stay, part, outside_request, taken, rest, policy_at, extension_account
		from refund `

func scanRefund(row pgx.CollectableRow) (f money.Refund, err error) {
	var (
		code, message, by *string
		due, policy       *time.Time
	)
	err = row.Scan(&f.ID, &f.Reservation, &f.State, &f.Reason, &f.Amount, &f.By, &f.Account, &f.KeyRevoked, &f.IdempotencyKey, &f.Attempt, &code, &message, &f.RequestedAt, &due, &by, &f.KeepsStay, &f.Part, &f.Outside, &f.Taken, &f.Rest, &policy, &f.ExtensionAccount)
	f.ErrorCode, f.ErrorMessage, f.DueAt, f.AccountBy, f.PolicyAt = value(code), value(message), value(due), value(by), value(policy)
	return f, err
}

func oneRefund(ctx context.Context, q Querier, where string, args ...any) (money.Refund, error) {
	rows, err := q.Query(ctx, selectRefund+where, args...)
	if err != nil {
		return money.Refund{}, err
	}
	f, err := pgx.CollectExactlyOneRow(rows, scanRefund)
	if errors.Is(err, pgx.ErrNoRows) {
		return f, ErrNoRefund
	}
	return f, err
}

// AdvanceRefund moves a refund to a state, with the provider's code and message if it was rejected. The provider has taken
// the amount of a refund off the balance when the bank transfers it or rejects the transfer. A closed refund ends no extension any more.
func AdvanceRefund(ctx context.Context, tx pgx.Tx, id int64, to money.RefundState, code, message string) error {
	_, err := tx.Exec(ctx, `
		update refund set state = $2, error_code = $3, error_message = $4, taken = taken or $5, updated_at = clock_timestamp(),
		       extension_account = case when $2 not in ('COMPLETED', 'REFUSED') then extension_account end
		where id = $1`,
		id, to, null(code), null(message), money.Refund{State: to, ErrorCode: code}.AtBank())
	return err
}

// RenewRefundKey sets a new Idempotency-Key for the next attempt, once per key, because the provider replays an error for
// the old one.
func RenewRefundKey(ctx context.Context, q Querier, id int64, old, key string) error {
	_, err := q.Exec(ctx, `
		update refund set idempotency_key = $3, attempt = attempt + 1, updated_at = clock_timestamp()
		where id = $1 and idempotency_key = $2`, id, old, key)
	return err
}

// RestoreKeys confirms a reservation again, with the keys that it had, after the provider permanently rejected the refund.
func RestoreKeys(ctx context.Context, tx pgx.Tx, id booking.ReservationID, refund int64) error {
	_, err := tx.Exec(ctx, `
		update reservation set state = 'DONE', doorlock_key = (select key_text(revoked_key) from refund where id = $2) where id = $1`, id, refund)
	return err
}

// ReopenRefund requests a failed refund again, with another account if there is one.
func ReopenRefund(ctx context.Context, tx pgx.Tx, id int64, account []byte, key string) error {
	_, err := tx.Exec(ctx, `
		update refund set state = 'REQUESTED', account = coalesce($2, account), idempotency_key = $3, attempt = 1,
		       error_code = null, error_message = null, requested_at = clock_timestamp(), updated_at = clock_timestamp() where id = $1`, id, account, key)
	return err
}

// RequestClosing has a refund that was not sent close its account instead. No account of the guest is kept for it, and it does not
// wait for approval any more.
func RequestClosing(ctx context.Context, tx pgx.Tx, id int64, key string) error {
	_, err := tx.Exec(ctx, `
		update refund set state = 'REQUESTED', account = null, account_summary = null, account_by = null, outside_request = null, idempotency_key = $2,
		       attempt = 1, error_code = null, error_message = null, requested_at = clock_timestamp(), updated_at = clock_timestamp() where id = $1`, id, key)
	return err
}

// PayRestTo has the rest of a canceled reservation follow a refund to the same account, which is replaced unless account is nil.
func PayRestTo(ctx context.Context, tx pgx.Tx, id int64, account []byte) error {
	_, err := tx.Exec(ctx, `update refund set rest = true, account = coalesce($2, account) where id = $1`, id, account)
	return err
}

// SetRefundAmount stores the amount that the provider refunded.
func SetRefundAmount(ctx context.Context, tx pgx.Tx, id int64, won int) error {
	_, err := tx.Exec(ctx, `update refund set amount = $2, updated_at = clock_timestamp() where id = $1`, id, won)
	return err
}

// JoinRefund adds won to a refund: those that were returned at the provider while the bank transfers it or has rejected it, or more of
// the payment while it waits for the guest's account.
func JoinRefund(ctx context.Context, tx pgx.Tx, id int64, won int) error {
	var (
		reservation booking.ReservationID
		keepsStay   bool
	)
	err := tx.QueryRow(ctx, `update refund set amount = amount + $2, updated_at = clock_timestamp() where id = $1 returning reservation_id, keeps_stay`, id, won).
		Scan(&reservation, &keepsStay)
	if err != nil || !keepsStay {
		return err
	}
	return CountReturned(ctx, tx, reservation, won)
}

// HasRefund reports whether a refund of a reservation's payment exists that was not refused.
func HasRefund(ctx context.Context, q Querier, id booking.ReservationID) (refunded bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from refund where reservation_id = $1 and amount > 0 and state <> 'REFUSED')`, id).Scan(&refunded)
	return refunded, err
}

// SetRefundDue stores the deadline of the bank's transfer. Each transfer of a refund has its own.
func SetRefundDue(ctx context.Context, tx pgx.Tx, id int64, due time.Time) error {
	_, err := tx.Exec(ctx, `update refund set due_at = $2 where id = $1`, id, due)
	return err
}

// OverdueRefunds returns the reservations, by order id, whose refund the bank has not transferred in time. id restricts
// the result to one reservation; 0 is all.
func OverdueRefunds(ctx context.Context, q Querier, id booking.ReservationID, now time.Time) (map[string]booking.ReservationID, error) {
	rows, err := q.Query(ctx, `
		select r.order_id, r.id from refund f join reservation r on r.id = f.reservation_id
		where f.state = 'PENDING' and coalesce(f.due_at, f.created_at + interval '5 days') < $1 and r.order_id is not null
		  and ($2::bigint = 0 or r.id = $2)`, now, id)
	if err != nil {
		return nil, err
	}
	return idsByOrder(rows)
}

// SettleRefundOutside completes a refund that an administrator settled outside the provider. rejected is the amount of its transfer that the bank
// has rejected or not completed, in won.
func SettleRefundOutside(ctx context.Context, tx pgx.Tx, id booking.ReservationID, refund int64, won, rejected int, how map[string]any) error {
	detail, err := json.Marshal(how)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update refund set state = 'COMPLETED', amount = $2, settled_outside = $3, error_code = null, error_message = null, extension_account = null,
		       updated_at = clock_timestamp() where id = $1`, refund, won, detail)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update payment set settled_outside = settled_outside + $2, rejected = rejected + $3, answers = answers + 1 where reservation_id = $1`, id, won, rejected)
	return err
}

// NoteRefundAccount stores the masked account of a refund. A refund by hand that waits for approval is withdrawn.
func NoteRefundAccount(ctx context.Context, tx pgx.Tx, id int64, summary string) error {
	_, err := tx.Exec(ctx, `update refund set account_summary = $2, account_by = null, outside_request = null where id = $1`, id, null(summary))
	return err
}

// AwaitApproval stores the administrator whose refund another one has to approve. outside is the request of a refund by
// hand, or nil.
func AwaitApproval(ctx context.Context, tx pgx.Tx, id int64, by string, outside []byte) error {
	_, err := tx.Exec(ctx, `update refund set account_by = $2, outside_request = $3, updated_at = clock_timestamp() where id = $1`, id, by, outside)
	return err
}

// ContactCorrectors returns the actors who have corrected one of the fields of a reservation's contact, the last one first.
func ContactCorrectors(ctx context.Context, tx pgx.Tx, id booking.ReservationID, fields ...string) ([]string, error) {
	rows, err := tx.Query(ctx, `
		select actor from audit where target = $1 and action = 'reservation.contact' and detail -> 'changed' ?| $2::text[]
		group by actor order by max(id) desc`, strconv.FormatInt(int64(id), 10), fields)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// ApproveRefundAccount stores the administrator who approved the refund.
func ApproveRefundAccount(ctx context.Context, tx pgx.Tx, id int64, by string) error {
	_, err := tx.Exec(ctx, `update refund set account_approved_by = $2, account_by = null, outside_request = null where id = $1`, id, by)
	return err
}

// WithdrawApproval ends the wait for a second administrator. If forget is set, the refund needs another account.
func WithdrawApproval(ctx context.Context, tx pgx.Tx, id int64, forget bool) error {
	_, err := tx.Exec(ctx, `
		update refund set account_by = null, outside_request = null, updated_at = clock_timestamp(),
		       account = case when $2 then null else account end, account_summary = case when $2 then null else account_summary end
		where id = $1`, id, forget)
	return err
}
