package moneysim

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// The intervals of package reserve.
const (
	holdTTL          = 10 * time.Minute
	depositDue       = 10 * time.Minute
	watchdogDelay    = 15 * time.Second
	checkLease       = 45 * time.Second
	providerLimit    = 80 * time.Second
	keepAfterRefusal = 2 * time.Minute
	depositPoll      = 30 * time.Second
	maxOvertaken     = 5
	maxWatch         = 7 * 24 * time.Hour
	doubtFor         = time.Minute
	doubtInterval    = 5 * time.Second
)

var (
	retryDelays = []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute}
	refundPolls = []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute, time.Hour}
)

func delay(delays []time.Duration, checks int) time.Duration {
	return delays[min(checks, len(delays)-1)]
}

var refundAccount = &toss.RefundAccount{Bank: "20", Number: "1002123456789", Holder: "홍길동"}

var (
	errOvertaken = errors.New("overtaken")
	errUnclear   = errors.New("unclear")
)

// modelService implements the operations of package reserve on rows in memory. The rows survive a process. step is called
// between any two actions of a process, and does not return if the process has crashed.
type modelService struct {
	*rows
	mu       *sync.Mutex // guards the rows: one transaction at a time
	now      func() time.Time
	payments reserve.Payments
	step     func(where string)
	changed  func(r *row, what string) // called in the transaction of a change
}

// tx runs do as a transaction, completely or not at all.
func (t *modelService) tx(where string, do func(now time.Time)) {
	t.step("before " + where)
	t.mu.Lock()
	do(t.now())
	t.mu.Unlock()
	t.step("after " + where)
}

// question is the stored state before a request to the provider.
type question struct {
	row      *row
	snapshot rule.Snapshot
	callback int // the latest stored callback, which the answer covers
	due      bool
}

func (t *modelService) ask(r *row) question {
	q := question{row: r, snapshot: rule.Snapshot{Reservation: r.Reservation, Order: r.order}, callback: t.lastWebhook(r.OrderID)}
	if r.payment != nil {
		q.snapshot.Payment = *r.payment
	}
	if r.refund != nil {
		f := *r.refund
		q.snapshot.Refund = &f
	}
	return q
}

func (q question) confirmRequest() toss.ConfirmRequest {
	return toss.ConfirmRequest{PaymentKey: q.snapshot.Payment.PaymentKey, OrderID: q.snapshot.Reservation.OrderID, Amount: q.snapshot.Reservation.Amount}
}

// answer models the type of the same name in package reserve.
type answer struct {
	payment  toss.Payment
	refused  *reserve.PaymentRefused
	unknown  bool
	declined *reserve.PaymentRefused
	due      bool // the question was
}

// confirm models the confirmation of a guest who returns from the widget. If the outcome is still pending, the guest must
// receive a message about it.
func (t *modelService) confirm(ctx context.Context, req reserve.ConfirmRequest) error {
	err := t.confirmOnce(ctx, req)
	if !errors.Is(err, reserve.ErrPaymentPending) {
		return err
	}
	t.tx("owe outcome", func(now time.Time) {
		r := t.byOrder(req.OrderID)
		switch {
		case r.State == booking.Confirming || r.State == booking.Canceling:
			if r.order.PendingAt.IsZero() {
				r.order.PendingAt = now
			}
		case rule.GivenUp(r.State):
			err = r.lastRefusal()
		default:
			err = r.receipt()
		}
	})
	return err
}

func (t *modelService) confirmOnce(ctx context.Context, req reserve.ConfirmRequest) (err error) {
	var (
		q    question
		ours bool
	)
	t.tx("begin", func(now time.Time) {
		r := t.byOrder(req.OrderID)
		switch {
		case r == nil || !r.order.ReplacedAt.IsZero():
			err = reserve.ErrUnknownOrder
		case req.Amount != r.Amount:
			err = reserve.ErrAmountMismatch
		case r.State == booking.Released && !r.order.PendingAt.IsZero():
			err = reserve.ErrPaymentPending
		case r.State == booking.Released:
			err = r.receipt()
		case r.State == booking.Hold || r.State == booking.Expired:
			ours, err = true, t.startConfirm(r, req, now)
		case r.payment == nil || r.payment.PaymentKey != req.PaymentKey:
			err = &reserve.PaymentRefused{Code: "ALREADY_PROCESSED_PAYMENT"}
		}
		if err == nil {
			q = t.ask(r)
		}
	})
	switch {
	case err != nil:
		return err
	case ours:
		err = t.sendConfirm(ctx, q)
	case q.snapshot.Reservation.State == booking.Confirming:
		err = t.follow(ctx, q)
	}
	if err != nil {
		return err
	}
	t.tx("receipt", func(time.Time) { err = q.row.receipt() })
	return err
}

func (t *modelService) startConfirm(r *row, req reserve.ConfirmRequest, now time.Time) error {
	if !now.Before(r.LastUnlock()) {
		return reserve.ErrHoldExpired
	}
	if !r.Occupies(now) {
		if booking.CheckStart(r.Interval, now) != nil {
			return reserve.ErrHoldExpired
		}
		t.expireHolds(r, now)
		if !t.free(r) {
			return reserve.ErrHoldExpired
		}
	}
	if err := t.startAttempt(r, req.PaymentKey, now, now.Add(watchdogDelay)); err != nil {
		return &reserve.PaymentRefused{Code: "INVALID_REQUEST"} // the service rolls the transaction back, so the model checks this first
	}
	if err := t.set(r, booking.Confirming); err != nil {
		panic(err) // the slot was free
	}
	t.changed(r, "confirming")
	return nil
}

func (t *modelService) sendConfirm(ctx context.Context, q question) error {
	t.step("send confirm")
	payment, err := t.payments.Confirm(ctx, toss.Widget, q.snapshot.Payment.ConfirmKey, q.confirmRequest())
	t.step("confirm answered")
	switch rule.Confirmed(err) {
	case rule.Act:
		return t.act(ctx, q, answer{payment: payment})
	case rule.AskAgain:
		return t.settle(ctx, q.row)
	case rule.AskLater:
		t.tx("renew", func(time.Time) { q.row.renewConfirmKey(q.snapshot.Payment.ConfirmKey) })
		return t.later(q)
	}
	return t.act(ctx, q, answer{refused: refusal(err), unknown: toss.ClassOf(err) == toss.NotFound})
}

func refusal(err error) *reserve.PaymentRefused {
	var e *toss.Error
	if errors.As(err, &e) {
		return &reserve.PaymentRefused{Code: e.Code, Message: e.Message}
	}
	return &reserve.PaymentRefused{Message: err.Error()}
}

// follow waits for the outcome of another process's attempt.
func (t *modelService) follow(ctx context.Context, q question) error {
	for ctx.Err() == nil {
		if t.now().Sub(q.snapshot.Payment.AttemptedAt) >= watchdogDelay {
			return t.settle(ctx, q.row)
		}
		confirming, verdict := false, error(nil)
		t.tx("look", func(time.Time) {
			confirming = q.row.State == booking.Confirming
			if rule.GivenUp(q.row.State) {
				verdict = q.row.lastRefusal()
			}
		})
		if !confirming {
			return verdict
		}
		time.Sleep(100 * time.Millisecond)
	}
	return reserve.ErrPaymentPending
}

// settleDue models the watchdog and the sweep.
func (t *modelService) settleDue(ctx context.Context, r *row) error {
	due := false
	t.tx("claim check", func(now time.Time) { due = r.claimCheck(now, checkLease) })
	if !due {
		return nil
	}
	return t.settleUnlessOvertaken(ctx, r, true)
}

// unsettled returns the rows that the sweep selects.
func (t *modelService) unsettled(now time.Time) (due []*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.list {
		// Another request of a refused attempt may still reach the provider.
		refused := rule.GivenUp(r.State) && r.payment != nil && !r.closedAttempt && now.Sub(r.payment.AttemptedAt) < maxWatch
		open := refused || r.blocked != "" || r.State == booking.Confirming || r.State == booking.WaitingForDeposit ||
			r.refund != nil && (r.refund.State == money.RefundRequested || r.refund.State == money.RefundPending)
		if open && r.payment != nil && !r.checkAt.IsZero() && !now.Before(r.checkAt) {
			due = append(due, r)
		}
	}
	return due
}

func (t *modelService) settle(ctx context.Context, r *row) error {
	return t.settleUnlessOvertaken(ctx, r, false)
}

func (t *modelService) settleUnlessOvertaken(ctx context.Context, r *row, due bool) error {
	for range maxOvertaken {
		if err := t.settleOnce(ctx, r, due); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return reserve.ErrPaymentPending
}

func (t *modelService) settleOnce(ctx context.Context, r *row, due bool) error {
	var (
		q       question
		charged bool
	)
	t.tx("ask", func(time.Time) { q, charged = t.ask(r), r.payment != nil })
	q.due = due
	if !charged {
		return nil
	}
	switch q.snapshot.Next(t.now()) {
	case rule.SendRefund:
		return t.sendRefund(ctx, q)
	case rule.CloseAccount:
		t.tx("overdue", func(now time.Time) {
			if r.State == booking.WaitingForDeposit && !now.Before(r.ExpiresAt) {
				t.startRefund(r, rule.ByOverdue, false, now)
			}
		})
		return errOvertaken
	}
	payment, err := t.lookUp(ctx, q)
	t.step("looked up")
	switch q.snapshot.Found(payment, err, t.now()) {
	case rule.Resend:
		return t.resend(ctx, q)
	case rule.Act:
		return t.apply(ctx, q, answer{payment: payment})
	case rule.Refusal:
		return t.apply(ctx, q, answer{refused: refusal(err), unknown: true})
	}
	return t.later(q)
}

func (t *modelService) lookUp(ctx context.Context, q question) (toss.Payment, error) {
	keys, p := toss.KeySet(q.snapshot.Payment.KeySet), q.snapshot.Payment
	payment, err := t.payments.PaymentByOrder(ctx, keys, q.snapshot.Reservation.OrderID)
	if err == nil && p.PaymentKey != "" && payment.PaymentKey != p.PaymentKey {
		return t.payments.Payment(ctx, keys, p.PaymentKey)
	}
	return payment, err
}

func (t *modelService) resend(ctx context.Context, q question) error {
	if t.now().Sub(q.snapshot.Payment.AttemptedAt) < watchdogDelay {
		return t.later(q)
	}
	payment, err := t.payments.Confirm(ctx, toss.Widget, q.snapshot.Payment.ConfirmKey, q.confirmRequest())
	t.step("resent")
	switch rule.Resent(err) {
	case rule.Act:
		return t.apply(ctx, q, answer{payment: payment})
	case rule.Refusal:
		return t.apply(ctx, q, answer{refused: refusal(err), unknown: toss.ClassOf(err) == toss.NotFound})
	}
	if rule.Answered(err) {
		t.tx("renew", func(time.Time) { q.row.renewConfirmKey(q.snapshot.Payment.ConfirmKey) })
	}
	return t.later(q)
}

func (t *modelService) later(q question) error {
	t.tx("later", func(now time.Time) { q.row.postponeCheck(now.Add(delay(retryDelays, q.snapshot.Payment.Checks))) })
	return reserve.ErrPaymentPending
}

func (t *modelService) act(ctx context.Context, q question, a answer) error {
	err := t.apply(ctx, q, a)
	if errors.Is(err, errOvertaken) {
		return t.settle(ctx, q.row)
	}
	return err
}

// apply brings a reservation in line with the provider's answer.
func (t *modelService) apply(_ context.Context, q question, a answer) (verdict error) {
	t.tx("apply", func(now time.Time) {
		r := t.byOrder(q.snapshot.Reservation.OrderID)
		if r.payment.Answers != q.snapshot.Payment.Answers {
			verdict = errOvertaken
			return
		}
		a.due = q.due
		verdict = t.transition(r, a, now)
		t.markWebhooksApplied(r.OrderID, q.callback)
	})
	return verdict
}

func (t *modelService) transition(r *row, a answer, now time.Time) error {
	before, p, refused := t.ask(r).snapshot, a.payment, a.refused
	step := before.After(rule.Answer{Payment: p, Refused: refused != nil, Declined: a.declined != nil}, now)
	if refused == nil && step.Kept() {
		r.saveProviderState(p, p.Secret)
	}
	if refused == nil && (step.Kept() || step == rule.Lapse || step == rule.NoOp) {
		t.book(r, p, now)
	}
	defer t.changed(r, string(step))
	switch step {
	case rule.RefusalReported, rule.NoOp:
		if rule.GivenUp(r.State) && before.SessionOver(now) {
			r.closedAttempt = true
			r.sendUnpaid(p)
		}
		if refused != nil {
			return refused
		}
		return nil
	case rule.Open:
		return reserve.ErrPaymentPending
	case rule.Lapse:
		r.countRefusal()
		r.State = booking.Expired
		if r.order.Abandoned() {
			r.State = booking.Released
		}
		r.sendUnpaid(p)
		return cmp.Or(refused, unpaid(p))
	case rule.Refuse, rule.ForeignRefuse:
		if step == rule.ForeignRefuse {
			refused, a.unknown = &reserve.PaymentRefused{Code: "INVALID_REQUEST"}, true
		}
		refused = cmp.Or(refused, unpaid(p))
		r.refusal = refused.Code
		r.countRefusal()
		r.markHeld(!a.unknown, now.Add(keepAfterRefusal))
		r.sendUnpaid(p)
		return refused
	case rule.Confirm:
		return t.confirmed(r, p)
	case rule.ConfirmIfFree:
		if t.confirmed(r, p) != nil && before.Late() == rule.Late {
			return t.late(r, before, p, now)
		}
	case rule.Late:
		return t.late(r, before, p, now)
	case rule.Wait, rule.Reverse:
		if step == rule.Wait {
			r.sent("virtual-account-issued")
			r.order.PendingAt = time.Time{}
		}
		return t.await(r, p, rule.DepositDue(r.Interval, now.Add(depositDue), now), now)
	case rule.WaitOn:
		r.postponeCheck(earlier(now.Add(depositPoll), r.ExpiresAt))
	case rule.Drop:
		if rule.AtBank(p.RefundStatus()) != money.RefundCompleted && r.refund == nil {
			if err := r.openRefund(rule.ByProvider, "revoked", p.CanceledAmount(), false); err != nil {
				return err
			}
			t.bank(r, before, a, now)
		}
		r.markCanceled()
		r.sent("canceled")
	case rule.Stay, rule.Partial:
		r.trustKey(now)
	case rule.Refunded:
		if r.refund == nil {
			return postgres.ErrNoRefund
		}
		r.returned = r.returned && !p.ApprovedAt.IsZero()
		r.markCanceled()
		r.sent("canceled")
		t.bank(r, before, a, now)
	case rule.Follow:
		t.bank(r, before, a, now)
	case rule.Restore:
		r.restoreKey()
		r.advanceRefund(money.RefundRefused, a.declined.Code)
		return a.declined
	case rule.Arrive:
		by := r.refund.By
		err := t.confirmed(r, p)
		r.advanceRefund(money.RefundRefused, a.declined.Code)
		if by != rule.ByOverdue {
			err = errors.Join(err, reserve.ErrAccountRequired)
		}
		return err
	case rule.ReturnDeposit:
		r.advanceRefund(money.RefundRefused, a.declined.Code)
		return errors.Join(t.late(r, before, p, now), reserve.ErrAccountRequired)
	case rule.Reopen:
		err := t.await(r, p, now.Add(time.Minute), now)
		r.advanceRefund(money.RefundRefused, a.declined.Code)
		return errors.Join(err, a.declined)
	case rule.Fail:
		r.failRefund(a.declined.Code)
		return a.declined
	case rule.ForeignReturn:
		t.startRefund(r, rule.ByAmount, false, now)
		return &reserve.PaymentRefused{Code: "INVALID_REQUEST"}
	case rule.Foreign:
		return &reserve.PaymentRefused{Code: "INVALID_REQUEST"}
	}
	return nil
}

// unpaid returns the refusal for a payment that ended without a charge.
func unpaid(p toss.Payment) *reserve.PaymentRefused {
	if p.Failure != nil {
		return &reserve.PaymentRefused{Code: p.Failure.Code}
	}
	return &reserve.PaymentRefused{Code: cmp.Or(p.Status, "NOT_PAID")}
}

func (t *modelService) confirmed(r *row, p toss.Payment) error {
	if err := t.markDone(r, p.Method); err != nil {
		return err
	}
	if r.PaidAt = t.now(); !p.ApprovedAt.IsZero() {
		r.PaidAt = p.ApprovedAt
	}
	r.sent("confirmed")
	r.order.PendingAt = time.Time{}
	return nil
}

func (t *modelService) late(r *row, before rule.Snapshot, p toss.Payment, now time.Time) error {
	r.markCanceled()
	won := p.BalanceAmount
	if p.Status == toss.StatusWaitingForDeposit {
		won = 0
	}
	if err := r.openRefund(before.LateBy(now), "", won, false); err != nil {
		return err
	}
	r.refundAt = now
	switch {
	case won > 0 && p.Method == toss.MethodVirtualAccount:
		r.failRefund("REFUND_ACCOUNT_REQUIRED")
		return nil
	case won > 0:
		r.sent("payment-returned") // an account without a deposit is only closed
		r.order.PendingAt = time.Time{}
	default:
		r.sendOutcome("payment-failed")
	}
	r.scheduleCheck(now)
	return nil
}

func (t *modelService) await(r *row, p toss.Payment, due, now time.Time) error {
	if v := p.VirtualAccount; v != nil && v.DueDate.After(now) {
		due = earlier(due, v.DueDate)
	}
	r.scheduleCheck(earlier(now.Add(depositPoll), due))
	return t.markWaiting(r, due)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// bank applies the state of the bank's transfer to a refund.
func (t *modelService) bank(r *row, before rule.Snapshot, a answer, now time.Time) {
	status := a.payment.RefundStatus()
	switch to := rule.AtBank(status); {
	case to == money.RefundPending && r.refund.State == to:
		if a.due {
			r.postponeCheck(now.Add(delay(refundPolls, before.Payment.Checks)))
		}
	case to == money.RefundPending:
		r.advanceRefund(to, "")
		r.scheduleCheck(now.Add(refundPolls[0]))
	case r.refund.State == to:
	case to == money.RefundFailed:
		r.failRefund(status)
	default:
		r.advanceRefund(to, "")
	}
}

func (t *modelService) startRefund(r *row, by string, account bool, now time.Time) {
	account = account && r.State == booking.Done && r.Method == booking.VirtualAccount
	won := r.Amount
	if r.PaidAt.IsZero() && by != rule.ByAmount {
		won = 0
	}
	if err := r.openRefund(by, cmp.Or(r.DoorlockKey, r.blocked), won, account); err != nil {
		panic(err)
	}
	r.refundAt = now
	r.markCanceling()
	r.scheduleCheck(now.Add(watchdogDelay))
	t.changed(r, "refund "+by)
}

// release releases the hold of a guest who leaves, or abandons a purchase whose outcome is unknown.
func (t *modelService) release(r *row) {
	t.tx("release", func(now time.Time) {
		switch r.State {
		case booking.Hold:
			r.State = booking.Released
			t.changed(r, "released")
		case booking.Confirming:
			if r.order.AbandonedAt.IsZero() {
				r.order.AbandonedAt = now
			}
			t.changed(r, "abandoned")
		}
	})
}

// registerAgain gives a live hold a new order, and reports whether it succeeded.
func (t *modelService) registerAgain(r *row, order string) (ok bool) {
	t.tx("register", func(now time.Time) {
		if ok = r.State == booking.Hold && r.Occupies(now); ok {
			t.replaceOrder(r, order, now)
			t.changed(r, "registered again")
		}
	})
	return ok
}

// cancel models a cancellation by the customer (by is "customer") or by an administrator.
func (t *modelService) cancel(ctx context.Context, r *row, by string, account bool) error {
	err := t.cancelOnce(ctx, r, by, account, "")
	if !errors.Is(err, errUnclear) {
		return err
	}
	var seen booking.BookingStatus
	t.tx("seen", func(time.Time) { seen = r.BookingStatus() })
	if err := t.refresh(ctx, r); err != nil && !errors.Is(err, reserve.ErrPaymentPending) {
		return err
	}
	return t.cancelOnce(ctx, r, by, account, seen)
}

// refresh looks a payment up and applies the answer.
func (t *modelService) refresh(ctx context.Context, r *row) error {
	for range maxOvertaken {
		var q question
		t.tx("ask", func(time.Time) { q = t.ask(r) })
		payment, err := t.lookUp(ctx, q)
		t.step("looked up")
		if err != nil {
			return reserve.ErrPaymentPending
		}
		err = t.apply(ctx, q, answer{payment: payment})
		if refused := (*reserve.PaymentRefused)(nil); errors.As(err, &refused) {
			return nil
		}
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return reserve.ErrPaymentPending
}

// cancelOnce cancels a reservation. seen is the state that an administrator saw before the last look-up; empty: there was
// none, and errUnclear is returned if one is needed.
func (t *modelService) cancelOnce(ctx context.Context, r *row, by string, account bool, seen booking.BookingStatus) (err error) {
	var refund int64 // in progress
	t.tx("cancel", func(now time.Time) {
		if by == "customer" && r.Method == "" {
			err = reserve.ErrNotFound
			return
		}
		if by == "customer" && r.State != booking.Canceled && r.State != booking.Canceling {
			if err = r.CanCancel(now); err != nil {
				return
			}
		}
		if seen != "" && (r.State.Live() || r.State == booking.Canceled) && r.BookingStatus() != seen {
			err = reserve.ErrStatusMismatch
			return
		}
		if by != "customer" && (!r.State.Live() || r.State == booking.Hold && !r.Occupies(now)) {
			err = reserve.ErrNotFound
			return
		}
		switch rule.Cancel(r.Reservation, r.payment != nil, account) {
		case rule.Release:
			r.State = booking.Released
		case rule.Pending:
			switch {
			case by == "customer" || !reserve.Unclear(r.Reservation, *r.payment, now):
				err = reserve.ErrPaymentPending
			case seen == "":
				err = errUnclear
			default:
				t.endUnclear(r, now)
			}
		case rule.NeedAccount:
			err = reserve.ErrAccountRequired
		case rule.End:
			r.markCanceled()
		case rule.Refund:
			t.startRefund(r, by, account, now)
			refund = r.refund.ID
		case rule.Join:
			refund = r.refund.ID
		}
	})
	if err != nil || refund == 0 {
		return err
	}
	return t.runRefund(ctx, r, refund)
}

// runRefund sends a recorded refund, which another process may settle meanwhile.
func (t *modelService) runRefund(ctx context.Context, r *row, id int64) error {
	err := t.settle(ctx, r)
	if err == nil {
		t.tx("refund outcome", func(time.Time) { err = r.refundOutcome(id) })
	}
	return err
}

// endUnclear models an administrator who ends a purchase whose outcome is unknown.
func (t *modelService) endUnclear(r *row, now time.Time) {
	if r.order.AbandonedAt.IsZero() {
		r.order.AbandonedAt = now
	}
	if r.order.PendingAt.IsZero() {
		r.order.PendingAt = now
	}
	r.State = booking.Released
	t.changed(r, "unclear ended")
}

func (t *modelService) sendRefund(ctx context.Context, q question) error {
	f, keys, key := q.snapshot.Refund, toss.KeySet(q.snapshot.Payment.KeySet), q.snapshot.Payment.PaymentKey
	request := toss.CancelRequest{Reason: "취소"}
	if len(f.Account) > 0 && q.snapshot.Payment.Status != toss.StatusWaitingForDeposit {
		request.RefundAccount = refundAccount
	}
	t.step("send refund")
	payment, cause := t.payments.Cancel(ctx, keys, f.IdempotencyKey, key, request)
	t.step("refund answered")
	if cause == nil {
		return t.apply(ctx, q, answer{payment: payment})
	}
	payment, err := t.payments.Payment(ctx, keys, key)
	t.step("refund looked up")
	switch rule.Cancelled(cause, payment, err, f.Attempt) {
	case rule.Act:
		return t.apply(ctx, q, answer{payment: payment})
	case rule.AskLater:
		if rule.Answered(cause) {
			t.tx("renew refund", func(time.Time) { q.row.renewRefundKey(f.ID, f.IdempotencyKey) })
		}
		return t.later(q)
	}
	return t.apply(ctx, q, answer{payment: payment, declined: refusal(cause)})
}

// retryRefund models an administrator who sends a failed refund again, to an account if there is one.
func (t *modelService) retryRefund(ctx context.Context, r *row, account bool) error {
	var refund int64
	t.tx("retry refund", func(now time.Time) {
		if r.refund != nil && r.refund.State == money.RefundFailed {
			refund = r.refund.ID
			r.reopenRefund(account)
			r.refundAt = now
			r.scheduleCheck(now.Add(watchdogDelay))
		}
	})
	if refund == 0 {
		return reserve.ErrNotFound
	}
	return t.runRefund(ctx, r, refund)
}

// settleOutside models an administrator who returns the money of a failed refund outside the provider.
func (t *modelService) settleOutside(r *row) (err error) {
	t.tx("settle outside", func(time.Time) {
		f := r.refund
		if f == nil || f.State != money.RefundFailed {
			err = reserve.ErrPaymentPending
			return
		}
		if r.payment.Status == toss.StatusWaitingForDeposit {
			err = reserve.ErrNothingToRefund
			return
		}
		won := r.payment.Balance
		if won == 0 {
			won = f.Amount // the bank rejected the transfer, so the provider holds the money again
		}
		r.advanceRefund(money.RefundCompleted, "")
		r.payment.SettledOutside += won
		r.payment.Answers++
		if r.State != booking.Canceled {
			r.markCanceled()
			r.sent("canceled")
		}
		t.changed(r, "settled outside")
	})
	return err
}

// reconcile models a light comparison: it looks up the orders whose balance differs from the provider's transactions.
func (t *modelService) reconcile(ctx context.Context) error {
	now := t.now()
	list, err := t.payments.Transactions(ctx, toss.Widget, t.compared.Add(-reserve.LightSpan), now)
	t.step("transactions listed")
	if err != nil {
		return err
	}
	won := map[string]int{}
	for _, m := range list {
		amount := m.Amount
		if m.Status != toss.StatusDone {
			amount = -amount
		}
		won[m.OrderID] = max(0, won[m.OrderID]+amount)
	}
	differ := map[*row]int{} // with the balance
	t.tx("compare", func(time.Time) {
		for order, theirs := range won {
			if r := t.byOrder(order); r != nil && r.payment != nil && r.refund == nil && r.State != booking.Confirming && theirs != r.payment.Balance {
				differ[r] = r.payment.Balance
			}
		}
	})
	for _, r := range slices.SortedFunc(maps.Keys(differ), func(a, b *row) int { return strings.Compare(a.OrderID, b.OrderID) }) {
		p, failed := t.payments.PaymentByOrder(ctx, toss.Widget, r.OrderID)
		t.step("compared")
		if failed == nil && p.BalanceAmount != differ[r] {
			failed = t.settle(ctx, r)
		}
		err = errors.Join(err, failed)
	}
	if err == nil {
		t.tx("complete", func(time.Time) { t.compared = now })
	}
	return err
}

// callback models ReceiveCallback.
func (t *modelService) callback(ctx context.Context, c toss.Event, retried bool) error {
	var (
		r   *row
		err error
		id  int
	)
	t.tx("callback", func(time.Time) {
		r = t.byOrder(c.OrderID)
		switch {
		case r == nil:
			err = reserve.ErrUnknownOrder
		case r.payment == nil || len(r.payment.Secret) == 0:
			err = reserve.ErrWrongSecret
			if r.State == booking.Confirming {
				err = reserve.ErrPaymentPending
			}
		case !c.SecretMatches(string(r.payment.Secret)):
			err = reserve.ErrWrongSecret
		default:
			id = t.saveWebhook(c.Fingerprint(), c.OrderID)
		}
	})
	if err != nil || id == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err = t.settleCallback(ctx, r, id); err == nil && !retried {
		t.doubtKey(r, c)
	}
	return nil // the callback is stored, and the sweep applies it later if necessary
}

// settleCallback looks the payment up. If a shared look-up began before the callback was stored, it is repeated.
func (t *modelService) settleCallback(ctx context.Context, r *row, id int) error {
	for range 2 {
		if err := t.settle(ctx, r); err != nil {
			return err
		}
		applied := false
		t.tx("applied?", func(time.Time) { applied = t.webhooks[id-1].applied })
		if applied {
			return nil
		}
	}
	return reserve.ErrPaymentPending
}

// unapplied returns the rows with unapplied callbacks.
func (t *modelService) unapplied() (list []*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.list {
		for _, h := range t.webhooks {
			if h.order == r.OrderID && !h.applied {
				list = append(list, r)
				break
			}
		}
	}
	return list
}

// doubtKey blocks the key after a callback that contradicts the provider's answer.
func (t *modelService) doubtKey(r *row, e toss.Event) {
	t.tx("doubt key", func(now time.Time) {
		old := !e.CreatedAt().IsZero() && !e.CreatedAt().After(r.PaidAt)
		if old || r.DoorlockKey == "" || t.ask(r).snapshot.Callback(e.Status) != rule.BlockDoor {
			return
		}
		r.blocked, r.DoorlockKey, r.BlockedUntil = r.DoorlockKey, "", now.Add(doubtFor)
		r.scheduleCheck(now.Add(doubtInterval))
		t.changed(r, "key blocked")
	})
}
