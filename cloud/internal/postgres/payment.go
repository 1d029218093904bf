package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// ErrNoPayment is returned if a reservation has no payment at the provider.
var ErrNoPayment = errors.New("postgres: no such payment")

const selectPayment = `
	select reservation_id, key_set, payment_key, confirm_key, attempt, attempted_at, checks, answers,
	       provider_status, balance_amount, secret, account_bank, account_number, account_holder, account_due_at, receipt_url, settled_outside, rejected, returned, retained
	from payment `

func scanPayment(row pgx.CollectableRow) (money.Payment, error) {
	var (
		p                                          money.Payment
		key, status, bank, number, holder, receipt *string
		balance                                    *int
		due                                        *time.Time
	)
	err := row.Scan(&p.Reservation, &p.KeySet, &key, &p.ConfirmKey, &p.Attempt, &p.AttemptedAt, &p.Checks, &p.Answers,
		&status, &balance, &p.Secret, &bank, &number, &holder, &due, &receipt, &p.SettledOutside, &p.Rejected, &p.Returned, &p.Retained)
	p.Status, p.Balance = value(status), value(balance)
	p.PaymentKey, p.ReceiptURL = value(key), value(receipt)
	p.Account = money.DepositAccount{Bank: value(bank), Number: value(number), Holder: value(holder), DueAt: value(due)}
	return p, err
}

// PaymentOf returns the payment of a reservation, or ErrNoPayment.
func PaymentOf(ctx context.Context, q Querier, id booking.ReservationID) (money.Payment, error) {
	rows, err := q.Query(ctx, selectPayment+`where reservation_id = $1`, id)
	if err != nil {
		return money.Payment{}, err
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanPayment)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, ErrNoPayment
	}
	return p, err
}

// PaymentsOf returns the payments of several reservations by id.
func PaymentsOf(ctx context.Context, q Querier, ids []booking.ReservationID) (map[booking.ReservationID]money.Payment, error) {
	rows, err := q.Query(ctx, selectPayment+`where reservation_id = any($1)`, ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanPayment)
	byID := make(map[booking.ReservationID]money.Payment, len(list))
	for _, p := range list {
		byID[p.Reservation] = p
	}
	return byID, err
}

// LatestPayment returns the payment key of the latest payment that was captured with a key set; empty: there is none.
func LatestPayment(ctx context.Context, q Querier, keySet string) (paymentKey string, err error) {
	err = q.QueryRow(ctx, `
		select payment_key from payment where key_set = $1 and approved_at is not null and payment_key is not null order by attempted_at desc limit 1`, keySet).
		Scan(&paymentKey)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return paymentKey, err
}

// StartAttempt records, before the provider is called, that a payment is being confirmed or an account issued. A payment key
// that belongs to another reservation is a unique violation. Responses to earlier attempts are void.
func StartAttempt(ctx context.Context, tx pgx.Tx, p money.Payment, nextCheck time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into payment (reservation_id, key_set, payment_key, confirm_key, attempted_at, check_at)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (reservation_id) do update set
		    key_set = excluded.key_set, payment_key = excluded.payment_key, confirm_key = excluded.confirm_key,
		    attempt = payment.attempt + 1, attempted_at = excluded.attempted_at, checks = 0, check_at = excluded.check_at,
		    answers = payment.answers + 1, closed_at = null, provider_status = null, balance_amount = null, updated_at = excluded.attempted_at`,
		p.Reservation, p.KeySet, null(p.PaymentKey), p.ConfirmKey, p.AttemptedAt, nextCheck)
	return err
}

// erased is the condition that the guest of a reservation was erased. Nothing personal is stored again, because no erasure would find it.
func erased(id string) string {
	return `exists (select from reservation where id = ` + id + ` and anonymised_at is not null)`
}

// SaveProviderState stores the provider's state and counts the response. deposited_at keeps its first value that is not zero
// until a reversal clears it. A confirmed payment key does not change. A charge closes the attempt, and an account that waits for a
// deposit again opens it.
func SaveProviderState(ctx context.Context, tx pgx.Tx, id booking.ReservationID, s money.ProviderState, depositedAt time.Time, now time.Time) error {
	_, err := tx.Exec(ctx, `
		update payment set payment_key = coalesce(payment_key, $2), provider_status = $3, total_amount = $4, balance_amount = $5,
		       approved_at = $6, secret = coalesce($7, secret), account_bank = coalesce($8, account_bank),
		       account_number = coalesce($9, account_number), account_holder = case when not `+erased("$1")+` then coalesce($10, account_holder) end,
		       receipt_url = case when not `+erased("$1")+` then coalesce($11, receipt_url) end,
		       deposited_at = case when $12::timestamptz is null then null else coalesce(deposited_at, $12) end,
		       closed_at = case when $3 = 'WAITING_FOR_DEPOSIT' then null when $6::timestamptz is null then closed_at else coalesce(closed_at, $13) end,
		       answers = answers + 1, updated_at = $13
		where reservation_id = $1`,
		id, s.PaymentKey, s.Status, s.Total, s.Balance, null(s.ApprovedAt), s.Secret, null(s.Account.Bank),
		null(s.Account.Number), null(s.Account.Holder), null(s.ReceiptURL), null(depositedAt), now)
	return err
}

// ReplacePaymentKey replaces the key of a payment, which may be empty, unless another one has replaced it already. A key that belongs to another
// reservation is a unique violation.
func ReplacePaymentKey(ctx context.Context, q Querier, id booking.ReservationID, key, by string) error {
	_, err := q.Exec(ctx, `update payment set payment_key = $3 where reservation_id = $1 and coalesce(payment_key, '') = $2`, id, key, by)
	return err
}

// CountRefusal counts a response in which the provider rejected the charge. It releases the payment key, which may belong to
// another order.
func CountRefusal(ctx context.Context, tx pgx.Tx, id booking.ReservationID) error {
	_, err := tx.Exec(ctx, `update payment set answers = answers + 1, payment_key = null where reservation_id = $1`, id)
	return err
}

// ScheduleCheck sets the time of the next query to the provider and resets the count of checks.
func ScheduleCheck(ctx context.Context, tx pgx.Tx, id booking.ReservationID, at time.Time) error {
	_, err := tx.Exec(ctx, `update payment set checks = 0, check_at = $2 where reservation_id = $1`, id, at)
	return err
}

// PostponeCheck counts an inconclusive check and sets the time of the next one.
func PostponeCheck(ctx context.Context, q Querier, id booking.ReservationID, at time.Time) error {
	_, err := q.Exec(ctx, `update payment set checks = checks + 1, check_at = $2 where reservation_id = $1`, id, at)
	return err
}

// ClaimCheck claims the check that is due for a reservation for the lease, so that only one caller queries the provider. It
// returns false if the check is not due or another caller has claimed it.
func ClaimCheck(ctx context.Context, q Querier, id booking.ReservationID, now time.Time, lease time.Duration) (bool, error) {
	tag, err := q.Exec(ctx, `update payment set check_at = $3 where reservation_id = $1 and check_at <= $2`, id, now, now.Add(lease))
	return tag.RowsAffected() == 1, err
}

// RenewConfirmKey sets a new Idempotency-Key for the next attempt of the same confirmation, once per key.
func RenewConfirmKey(ctx context.Context, q Querier, id booking.ReservationID, old, key string) error {
	_, err := q.Exec(ctx, `
		update payment set confirm_key = $3, attempt = attempt + 1 where reservation_id = $1 and confirm_key = $2`, id, old, key)
	return err
}

// unsettled selects the reservations whose outcome at the provider is open: they are being confirmed, wait for a deposit, or have a
// blocked key or a refund in progress.
const unsettled = `
	select r.id from reservation r where r.state in ('CONFIRMING', 'WAITING_FOR_DEPOSIT')
	union all
	select r.id from reservation r where r.keys_blocked
	union all
	select f.reservation_id from refund f where f.state in ('REQUESTED', 'PENDING')`

// mayStillCharge is the condition that the attempt of reservation r with payment p is over here, but a slower request of the
// same attempt may still reach the provider and charge. It ends when the provider is queried after the end of its payment
// session: see CloseAttempt. $3 bounds the search.
const mayStillCharge = `(r.state in ('HOLD', 'EXPIRED', 'RELEASED') and p.closed_at is null and p.attempted_at > $3)`

// maxWatch bounds how long an attempt is watched. If the provider is unavailable for longer, the reconciliation covers the
// attempt.
const maxWatch = 7 * 24 * time.Hour

// Unsettled returns the reservations whose check at the provider is due, the longest waiting first. Each alternative has an index
// of what is open. With an "or" all payments that were ever made are read, because their checks are in the past (TestReadsUseIndexes),
// and the planner compares each alternative with the conditions of all indexes of reservation. That of Stuck is a case for the second
// reason (BenchmarkPaymentsOfASweep).
func Unsettled(ctx context.Context, q Querier, now time.Time, limit int) ([]booking.ReservationID, error) {
	rows, err := q.Query(ctx, `
		select p.reservation_id from payment p
		where p.check_at <= $1 and p.reservation_id in (`+unsettled+`
			union all
			select r.id from payment p join reservation r on r.id = p.reservation_id where `+mayStillCharge+`)
		order by p.check_at limit $2`, now, limit, now.Add(-maxWatch))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
}

// Stuck returns the reservations, by order id, that occupy a slot although the outcome of their payment or refund has been
// unknown since before. Regular waits, such as for a deposit that is not yet due, are excluded. id restricts the result to one
// reservation; 0 is all.
func Stuck(ctx context.Context, q Querier, id booking.ReservationID, before time.Time) (map[string]booking.ReservationID, error) {
	rows, err := q.Query(ctx, `
		select r.order_id, r.id from reservation r join payment p on p.reservation_id = r.id
		where r.order_id is not null and ($2::bigint = 0 or r.id = $2) and r.state in ('CONFIRMING', 'WAITING_FOR_DEPOSIT', 'CANCELING')
		and case r.state
		    when 'CONFIRMING' then p.attempted_at <= $1
		    when 'WAITING_FOR_DEPOSIT' then r.expires_at <= $1
		    else exists (select from refund f where f.reservation_id = r.id and f.state = 'REQUESTED' and coalesce(f.requested_at, f.created_at) <= $1)
		end`, before, id)
	if err != nil {
		return nil, err
	}
	return idsByOrder(rows)
}

func idsByOrder(rows pgx.Rows) (map[string]booking.ReservationID, error) {
	ids := map[string]booking.ReservationID{}
	var (
		order string
		id    booking.ReservationID
	)
	_, err := pgx.ForEachRow(rows, []any{&order, &id}, func() error {
		ids[order] = id
		return nil
	})
	return ids, err
}

// AppendLedger appends an entry to the ledger.
func AppendLedger(ctx context.Context, q Querier, e money.LedgerEntry) error {
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, `
		insert into ledger (reservation_id, order_id, kind, amount, code, detail) values ($1, $2, $3, $4, $5, $6)`,
		e.Reservation, null(e.OrderID), e.Kind, null(e.Amount), null(e.Code), detail)
	return err
}

// LastRefusal returns the code and message of the provider's last rejection of an order's confirmation; both are empty if
// there is none.
func LastRefusal(ctx context.Context, q Querier, orderID string) (code, message string, err error) {
	err = q.QueryRow(ctx, `
		select coalesce(code, ''), coalesce(detail ->> 'message', '') from ledger
		where order_id = $1 and kind = 'confirm.refused' order by id desc limit 1`, orderID).Scan(&code, &message)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return code, message, err
}

// SetAccountDue stores the deadline of a virtual account: the earlier of the provider's deadline and ours.
func SetAccountDue(ctx context.Context, q Querier, id booking.ReservationID, due time.Time) error {
	_, err := q.Exec(ctx, `update payment set account_due_at = $2 where reservation_id = $1`, id, due)
	return err
}
