package moneytest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// Settled waits until the outcome of every payment and of every message is known.
func Settled(ctx context.Context, db *pgxpool.Pool) error {
	const open = `
		select (select count(*) from reservation where state in ('CONFIRMING', 'CANCELING'))
		     + (select count(*) from reservation where state = 'WAITING_FOR_DEPOSIT' and expires_at < now() - interval '1 second')
		     + (select count(*) from refund where state in ('REQUESTED', 'PENDING'))
		     + (select count(*) from webhook_event where applied_at is null)
		     + (select count(*) from message where state in ('QUEUED', 'SENDING'))`
	for {
		var n int
		err := db.QueryRow(ctx, open).Scan(&n)
		if err == nil && n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("moneytest: %d things are still open: %w", n, errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond): // rows of another process: there is no event to wait for
		}
	}
}

// row is a reservation with an order, and its payment.
type row struct {
	ID         int64
	Order      string
	State      string
	Amount     int
	Key        *string // the hash of the owner's key in hexadecimal digits
	Rotated    bool    // the key replaced another one without a new confirmation
	PaymentKey *string
	Refund     *string // state of its latest refund
	Outside    int     // won that an administrator refunded outside the provider
	Returned   int     // won of refunds that keep the stay
	Retained   int     // won that the refund policy left with the shop
	Extension  bool
	Completed  int // won of completed refunds
	Owed       int // won of refunds that the bank has rejected
}

// Audit compares a settled database with the provider's ledger and checks the invariants M1 to M9. The returned error joins
// all violations. orphans is the won that the test charged at the provider without an order.
func Audit(ctx context.Context, db *pgxpool.Pool, box *sandbox.Sandbox, orphans int) error {
	rows, err := db.Query(ctx, `
		select r.id, r.order_id, r.state, r.amount, encode(k.hash, 'hex'),
		       coalesce((select revoked_as in ('rotated', 'corrected') from access_key earlier
		                 where earlier.reservation_id = r.id and earlier.kind = 'owner' and earlier.id < k.id order by earlier.id desc limit 1), false),
		       p.payment_key,
		       (select state from refund where reservation_id = r.id order by id desc limit 1),
		       coalesce(p.settled_outside, 0),
		       coalesce(p.returned, 0) - coalesce((select sum(amount) from refund where reservation_id = r.id and keeps_stay and not taken
		         and state = 'FAILED' and error_code = 'REFUND_ACCOUNT_REQUIRED'), 0), -- a compensation that waits for an account has not been sent
		       coalesce(p.retained, 0), r.extends is not null,
		       coalesce((select sum(amount) from refund where reservation_id = r.id and state = 'COMPLETED'), 0),
		       coalesce((select sum(amount) from refund where reservation_id = r.id and state = 'FAILED' and taken), 0)
		from reservation r left join payment p on p.reservation_id = r.id
		left join access_key k on k.reservation_id = r.id and k.kind = 'owner' and k.revoked_at is null and r.state = 'DONE' and not r.keys_blocked
		where r.order_id is not null order by r.id`)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return err
	}
	a := auditor{box: box, messages: box.Messages("")}
	for _, r := range list {
		a.payment(r)
		a.keys(r)
	}
	if l := box.Ledger(); l.Charged-l.Refunded != a.held+orphans {
		a.violation("M2: the provider holds %d won (%d in, %d out), the reservations say %d", l.Charged-l.Refunded, l.Charged, l.Refunded, a.held+orphans)
	}
	a.slots(ctx, db)
	a.ledger(ctx, db)
	a.books(ctx, db, list)
	a.export(ctx, db)
	a.proof(ctx, db)
	return errors.Join(a.violations...)
}

type auditor struct {
	box        *sandbox.Sandbox
	messages   []sandbox.Message
	held       int // won, by the reservations
	violations []error
}

func (a *auditor) violation(format string, args ...any) {
	a.violations = append(a.violations, fmt.Errorf(format, args...))
}

// provided is what the provider has of an order.
type provided struct {
	captures, accounts int  // payments that were captured, and accounts that wait for their deposit
	held, returned     int  // won
	partial            bool // a part of a payment was canceled
}

// payments sums up the provider's payments for the order of a reservation, and checks each of them.
func (a *auditor) payments(r row) (sum provided) {
	for _, p := range a.box.Payments(r.Order) {
		if p.ApprovedAt != nil {
			sum.captures++
		}
		sum.partial = sum.partial || p.Status == sandbox.StatusPartialCanceled
		switch p.Status {
		case sandbox.StatusDone, sandbox.StatusPartialCanceled:
			sum.held += p.BalanceAmount
		case sandbox.StatusWaitingForDeposit:
			sum.accounts++
		}
		if p.ApprovedAt != nil && p.TotalAmount != r.Amount {
			a.violation("M4: order %s is %d won here and %d at the provider", r.Order, r.Amount, p.TotalAmount)
		}
		if p.Status == sandbox.StatusDone && r.State == "DONE" && p.Currency != "KRW" {
			a.violation("M4: order %s is paid in %s", r.Order, p.Currency)
		}
		// A payment that the provider's dashboard canceled before its capture was known counts as refused.
		if p.ApprovedAt != nil && p.Status != sandbox.StatusCanceled && (r.PaymentKey == nil || *r.PaymentKey != p.PaymentKey) {
			a.violation("M1: order %s was captured with a payment key that is not its own", r.Order)
		}
		for _, c := range p.Cancels {
			sum.returned += c.CancelAmount
		}
	}
	return sum
}

// payment compares a reservation with the provider's payment for its order.
func (a *auditor) payment(r row) {
	p := a.payments(r)
	// After a failed bank transfer the provider still holds the money, and an administrator has to refund it.
	bounced := a.box.Bounced(r.Order)
	if bounced != r.Owed && r.Outside == 0 {
		a.violation("C21: the bank failed to refund %d won of order %s, and failed refunds of %d won are listed", bounced, r.Order, r.Owed)
	}
	if r.Completed > max(0, p.returned-bounced)+r.Outside {
		a.violation("M6: order %s: refunds of %d won are completed, and the provider refunded %d won, of which the bank returned %d", r.Order, r.Completed, p.returned, bounced)
	}
	a.held += p.held + bounced
	if p.captures > 1 {
		a.violation("M1: order %s was captured %d times", r.Order, p.captures)
	}
	failed := r.Refund != nil && *r.Refund == "FAILED"
	switch {
	case r.State == "DONE" && p.held != r.Amount-r.Returned && (!p.partial || r.Returned > 0):
		a.violation("M2: order %s is DONE and the provider holds %d of %d won", r.Order, p.held, r.Amount)
	case r.State != "DONE" && p.held > r.Retained && !failed && r.Outside == 0:
		a.violation("M2: order %s is %s, the provider holds %d won that no refund returns", r.Order, r.State, p.held)
	case (r.State == "WAITING_FOR_DEPOSIT") != (p.accounts > 0):
		a.violation("M8: order %s is %s and %d accounts wait for money at the provider", r.Order, r.State, p.accounts)
	}
}

// keys checks that a reservation has a key exactly if it is DONE and no extension, and that its guest received the key once
// or twice.
func (a *auditor) keys(r row) {
	if (r.State == "DONE" && !r.Extension) != (r.Key != nil) {
		a.violation("M7: order %s is %s, and its key alive is %t", r.Order, r.State, r.Key != nil)
	}
	if r.Key == nil {
		return
	}
	told := 0
	for _, m := range a.messages {
		delivers := confirmations[m.Template]
		if r.Rotated {
			delivers = m.Template == string(notify.KeyChanged)
		}
		if key := sha256.Sum256([]byte(m.Variables["doorlockKey"])); hex.EncodeToString(key[:]) == *r.Key && delivers {
			told++
		}
	}
	if told < 1 || told > 2 {
		a.violation("M9: the guest of order %s got the key %d times", r.Order, told)
	}
}

// confirmations are the templates that carry the key of a confirmed reservation.
var confirmations = map[string]bool{
	string(notify.ReservationConfirmed): true, string(notify.ReservationConfirmedPIN): true,
	string(notify.DepositConfirmed): true, string(notify.DepositConfirmedPIN): true,
}

// slots checks that no time, including margins, is sold twice.
func (a *auditor) slots(ctx context.Context, db *pgxpool.Pool) {
	var twice int
	err := db.QueryRow(ctx, `
		select count(*) from reservation a join reservation b on a.id < b.id and a.room_id = b.room_id
		   and (a.occupied && b.occupied or tstzrange(a.start_at, a.end_at) && tstzrange(b.start_at, b.end_at))
		where a.state in ('CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
		  and b.state in ('CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')`).Scan(&twice)
	if err != nil || twice > 0 {
		a.violation("M8: %d times are sold twice (%v)", twice, err)
	}
}

// books checks that the entries equal the provider's captures and cancellations, per order and per day in Korea. A deposit and
// its reversal are left out: the provider has no record of them.
func (a *auditor) books(ctx context.Context, db *pgxpool.Pool, list []row) {
	rows, err := db.Query(ctx, `
		select order_id, (at at time zone 'Asia/Seoul')::date::text, won from money_entry e
		where kind in ('paid', 'refunded') and not exists (
			select from money_entry reversed where reversed.source = replace(e.source, 'paid:', 'reversed:') and reversed.kind = 'reversed' and e.kind = 'paid')`)
	if err != nil {
		a.violation("M11: %w", err)
		return
	}
	type place struct{ order, day string }
	var (
		at   place
		won  int
		ours = map[place]int{}
	)
	_, err = pgx.ForEachRow(rows, []any{&at.order, &at.day, &won}, func() error {
		ours[at] += won
		return nil
	})
	if err != nil {
		a.violation("M11: %w", err)
	}
	for _, r := range list {
		for _, p := range a.box.Payments(r.Order) {
			if p.ApprovedAt == nil {
				continue
			}
			ours[place{r.Order, day(*p.ApprovedAt)}] -= p.TotalAmount
			for _, c := range p.Cancels {
				ours[place{r.Order, day(c.CanceledAt)}] += c.CancelAmount
			}
		}
	}
	for at, won := range ours {
		if won != 0 {
			a.violation("M11: order %s: the entries of %s differ from the provider's by %d won", at.order, at.day, won)
		}
	}
}

// export checks that the payments of each branch, as exported, add up to the entries of their reservations.
func (a *auditor) export(ctx context.Context, db *pgxpool.Pool) {
	rows, err := db.Query(ctx, `
		select b.id, coalesce(sum(e.won) filter (where e.kind = 'paid'), 0)::int, coalesce(-sum(e.won) filter (where e.kind <> 'paid'), 0)::int
		from branch b left join reservation r on r.branch_id = b.id and r.state in ('DONE', 'WAITING_FOR_DEPOSIT', 'CANCELING', 'CANCELED')
		left join money_entry e on e.reservation_id = r.id group by b.id`)
	if err != nil {
		a.violation("M11: %w", err)
		return
	}
	type sums struct {
		Branch       booking.BranchID
		Paid, Return int
	}
	branches, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sums])
	always := booking.Interval{Start: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, want := range branches {
		got := sums{Branch: want.Branch}
		err = errors.Join(err, postgres.EachPaid(ctx, db, want.Branch, always, func(p postgres.PaidReservation) error {
			got.Paid, got.Return = got.Paid+p.Received, got.Return+p.Returned
			return nil
		}))
		if got != want {
			a.violation("M11: the exported payments of branch %d are %d won in and %d out, the entries %d and %d", want.Branch, got.Paid, got.Return, want.Paid, want.Return)
		}
	}
	if err != nil {
		a.violation("M11: %w", err)
	}
}

// day is the day of a time in Korea.
func day(t time.Time) string { return t.In(seoul).Format(time.DateOnly) }

// ledger checks that the database's ledger contains each charge once, and no refund without a request.
func (a *auditor) ledger(ctx context.Context, db *pgxpool.Pool) {
	rows, err := db.Query(ctx, `
		select order_id || ': ' || string_agg(kind, ' ' order by id) from ledger group by order_id
		having count(*) filter (where kind = 'confirm.done') > 1
		    or count(*) filter (where kind = 'cancel.done') > count(*) filter (where kind = 'cancel.requested')`)
	if err != nil {
		a.violation("M11: %w", err)
		return
	}
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(wrong) > 0 {
		a.violation("M11: ledger %v (%v)", wrong, err)
	}
}

// proof checks the rules of slots and money that the service checks on its rows every night. Tests write rows of other
// kinds themselves.
func (a *auditor) proof(ctx context.Context, db *pgxpool.Pool) {
	results, err := postgres.Prove(ctx, db, time.Time{})
	if err != nil {
		a.violation("proof: %w", err)
	}
	for _, r := range results {
		if !slices.Contains([]string{"B1", "M2", "M4", "M6"}, r.ID) {
			continue
		}
		for _, f := range r.Findings {
			a.violation("proof: %s: %s: %s", r.ID, f.Subject, f.Detail)
		}
	}
}

// Confirms returns the number of confirmations of an order that reached the provider, and of those that it executed.
func Confirms(box *sandbox.Sandbox, order string) (calls, captured int) {
	calls = len(slices.DeleteFunc(box.Ledger().Calls, func(c sandbox.Call) bool {
		return c.OrderID != order || c.Path != "/v1/payments/confirm"
	}))
	for _, p := range box.Payments(order) {
		if p.ApprovedAt != nil {
			captured++
		}
	}
	return calls, captured
}
