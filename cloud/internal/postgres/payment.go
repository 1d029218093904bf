package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ErrNoPayment says that a reservation has no payment at the provider.
var ErrNoPayment = errors.New("postgres: no such payment")

// Payment is the provider's side of a reservation.
type Payment struct {
	Reservation booking.ReservationID
	KeySet      string // the provider's key set that made it: widget or api
	PaymentKey  string
	ConfirmKey  string // Idempotency-Key of the attempt under way or done
	Attempt     int
	AttemptedAt time.Time
	Checks      int
	Secret      []byte // of the deposit callback, sealed
	Account     Account
	DepositedAt time.Time
	ReceiptURL  string
}

// Account is the virtual account a customer pays into.
type Account struct {
	Bank   string // two-character bank code
	Number string
	Holder string
	DueAt  time.Time
}

const selectPayment = `
	select reservation_id, key_set, payment_key, confirm_key, attempt, attempted_at, checks, secret,
	       account_bank, account_number, account_holder, account_due_at, deposited_at, receipt_url
	from payment `

func scanPayment(row pgx.CollectableRow) (Payment, error) {
	var (
		p                                  Payment
		key, bank, number, holder, receipt *string
		due, deposited                     *time.Time
	)
	err := row.Scan(&p.Reservation, &p.KeySet, &key, &p.ConfirmKey, &p.Attempt, &p.AttemptedAt, &p.Checks, &p.Secret,
		&bank, &number, &holder, &due, &deposited, &receipt)
	p.PaymentKey, p.ReceiptURL, p.DepositedAt = value(key), value(receipt), value(deposited)
	p.Account = Account{Bank: value(bank), Number: value(number), Holder: value(holder), DueAt: value(due)}
	return p, err
}

// PaymentOf returns the payment of a reservation, or ErrNoPayment.
func PaymentOf(ctx context.Context, q Querier, id booking.ReservationID) (Payment, error) {
	rows, err := q.Query(ctx, selectPayment+`where reservation_id = $1`, id)
	if err != nil {
		return Payment{}, err
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanPayment)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, ErrNoPayment
	}
	return p, err
}

// PaymentsOf returns the payments of several reservations by id.
func PaymentsOf(ctx context.Context, q Querier, ids []booking.ReservationID) (map[booking.ReservationID]Payment, error) {
	rows, err := q.Query(ctx, selectPayment+`where reservation_id = any($1)`, ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanPayment)
	byID := make(map[booking.ReservationID]Payment, len(list))
	for _, p := range list {
		byID[p.Reservation] = p
	}
	return byID, err
}

// StartAttempt writes down, before the provider is called, that a payment is being confirmed or an account issued.
// A payment key that belongs to another reservation is a unique violation.
func StartAttempt(ctx context.Context, tx pgx.Tx, p Payment, nextCheck time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into payment (reservation_id, key_set, payment_key, confirm_key, attempted_at, check_at)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (reservation_id) do update set
		    key_set = excluded.key_set, payment_key = excluded.payment_key, confirm_key = excluded.confirm_key,
		    attempt = payment.attempt + 1, attempted_at = excluded.attempted_at, checks = 0, check_at = excluded.check_at,
		    updated_at = excluded.attempted_at`,
		p.Reservation, p.KeySet, null(p.PaymentKey), p.ConfirmKey, p.AttemptedAt, nextCheck)
	return err
}

// ProviderState is what the provider said about a payment.
type ProviderState struct {
	PaymentKey string
	Status     string
	Total      int
	Balance    int
	ApprovedAt time.Time
	Secret     []byte // sealed; empty keeps what is stored
	Account    Account
	ReceiptURL string
}

// SaveProviderState stores what the provider said. depositedAt is set the first time it is not zero and cleared by a reversal.
func SaveProviderState(ctx context.Context, tx pgx.Tx, id booking.ReservationID, s ProviderState, depositedAt time.Time, now time.Time) error {
	_, err := tx.Exec(ctx, `
		update payment set payment_key = $2, provider_status = $3, total_amount = $4, balance_amount = $5,
		       approved_at = $6, secret = coalesce($7, secret), account_bank = coalesce($8, account_bank),
		       account_number = coalesce($9, account_number), account_holder = coalesce($10, account_holder),
		       account_due_at = coalesce($11, account_due_at), receipt_url = coalesce($12, receipt_url),
		       deposited_at = case when $13::timestamptz is null then null else coalesce(deposited_at, $13) end, updated_at = $14
		where reservation_id = $1`,
		id, s.PaymentKey, s.Status, s.Total, s.Balance, null(s.ApprovedAt), s.Secret, null(s.Account.Bank),
		null(s.Account.Number), null(s.Account.Holder), null(s.Account.DueAt), null(s.ReceiptURL), null(depositedAt), now)
	return err
}

// PostponeCheck notes that the provider could not tell, and when to ask again.
func PostponeCheck(ctx context.Context, q Querier, id booking.ReservationID, at time.Time) error {
	_, err := q.Exec(ctx, `update payment set checks = checks + 1, check_at = $2 where reservation_id = $1`, id, at)
	return err
}

// RenewConfirmKey gives the next attempt of the same confirmation a fresh Idempotency-Key.
func RenewConfirmKey(ctx context.Context, q Querier, id booking.ReservationID, key string) error {
	_, err := q.Exec(ctx, `update payment set confirm_key = $2, attempt = attempt + 1 where reservation_id = $1`, id, key)
	return err
}

// Unsettled returns reservations whose outcome at the provider is open and due to be asked about: under
// confirmation, waiting for a deposit past their deadline, or with a refund under way.
func Unsettled(ctx context.Context, q Querier, now time.Time, limit int) ([]booking.ReservationID, error) {
	rows, err := q.Query(ctx, `
		select r.id from reservation r left join payment p on p.reservation_id = r.id
		where (r.state = 'CONFIRMING' and p.check_at <= $1)
		   or (r.state = 'WAITING_FOR_DEPOSIT' and r.expires_at <= $1 and coalesce(p.check_at, $1) <= $1)
		union
		select reservation_id from refund where state in ('REQUESTED', 'PENDING') and next_at <= $1
		limit $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
}

// LedgerEntry is one line of money's history; Detail must hold nothing secret.
type LedgerEntry struct {
	Reservation booking.ReservationID
	OrderID     string
	Kind        string // confirm.sent, confirm.done, …
	Amount      int
	Code        string // the provider's code
	Detail      map[string]any
}

// AppendLedger writes a line of money's history.
func AppendLedger(ctx context.Context, q Querier, e LedgerEntry) error {
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, `
		insert into ledger (reservation_id, order_id, kind, amount, code, detail) values ($1, $2, $3, $4, $5, $6)`,
		e.Reservation, null(e.OrderID), e.Kind, null(e.Amount), null(e.Code), detail)
	return err
}

// Webhook is a stored callback of the provider.
type Webhook struct {
	ID             int64
	TransmissionID string
	OrderID        string
	Status         string
}

// SaveWebhook stores a callback once; false means that it was there already.
func SaveWebhook(ctx context.Context, q Querier, w Webhook) (bool, error) {
	tag, err := q.Exec(ctx, `
		insert into webhook_event (transmission_id, order_id, status) values ($1, $2, $3) on conflict do nothing`,
		null(w.TransmissionID), w.OrderID, w.Status)
	return tag.RowsAffected() == 1, err
}

// MarkWebhooksApplied closes the callbacks of an order that were received before the provider was asked.
func MarkWebhooksApplied(ctx context.Context, q Querier, orderID string, asked, now time.Time) error {
	_, err := q.Exec(ctx, `
		update webhook_event set applied_at = $3 where order_id = $1 and received_at <= $2 and applied_at is null`,
		orderID, asked, now)
	return err
}

// UnappliedOrders returns the orders with callbacks that have not been acted on.
func UnappliedOrders(ctx context.Context, q Querier, limit int) ([]string, error) {
	rows, err := q.Query(ctx, `
		select order_id from webhook_event where applied_at is null group by order_id order by min(received_at) limit $1`, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// SetAccountDue stores until when a virtual account waits: the earlier of the provider's deadline and ours.
func SetAccountDue(ctx context.Context, q Querier, id booking.ReservationID, due time.Time) error {
	_, err := q.Exec(ctx, `update payment set account_due_at = $2 where reservation_id = $1`, id, due)
	return err
}

// ReportDifference lists a difference between the provider's books and ours for the head quarters, once per kind.
func ReportDifference(ctx context.Context, q Querier, orderID, kind, detail string) error {
	_, err := q.Exec(ctx, `
		insert into reconciliation_difference (order_id, kind, detail) values ($1, $2, $3)
		on conflict (order_id, kind) do update set detail = excluded.detail`, orderID, kind, detail)
	return err
}

// Holding is what a reservation says the provider holds for it.
type Holding struct {
	Reservation booking.ReservationID
	Won         int
}

// Holdings returns, by order id, the payments begun in a span of time and what we believe the provider holds of each.
func Holdings(ctx context.Context, q Querier, from, to time.Time) (map[string]Holding, error) {
	rows, err := q.Query(ctx, `
		select r.order_id, r.id, case when r.state in ('DONE', 'CANCELING') and r.paid_at is not null then r.amount else 0 end
		from reservation r join payment p on p.reservation_id = r.id
		where p.attempted_at between $1 and $2 and r.order_id is not null`, from, to)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	held := map[string]Holding{}
	for rows.Next() {
		var (
			order string
			h     Holding
		)
		if err := rows.Scan(&order, &h.Reservation, &h.Won); err != nil {
			return nil, err
		}
		held[order] = h
	}
	return held, rows.Err()
}
