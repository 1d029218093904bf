package moneysim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// row is a reservation with its payment and its open refund.
type row struct {
	booking.Reservation
	payment *money.Payment
	refund  *money.Refund
	closed  []money.Refund // completed and refused refunds
	checkAt time.Time
	keys    int    // number of keys ever created
	blocked string // the key while it is blocked; DoorlockKey is empty then
	revoked string // the key that the open refund revoked
	asked   intent // the cancellation whose refund is open, as it ends the extensions

	order         money.Order
	extended      bool
	closedAttempt bool
	refusal       string               // code of the last refusal
	messages      []message            // that the guest has received
	refundAt      time.Time            // when the latest refund was requested
	account       bool                 // of an exchange: the refund account of the old stay is stored
	policy        booking.RefundPolicy // as it was at the payment; nil: the default
	outage        outage               // of its door
}

// message is a message about an order.
type message struct{ order, template string }

func (r *row) sent(template string) { r.messages = append(r.messages, message{r.OrderID, template}) }

// sendUnpaid sends the outcome of an order without a charge, or whose charge was returned at the provider.
func (r *row) sendUnpaid(p toss.Payment) {
	if !p.ApprovedAt.IsZero() && p.CanceledAmount() > 0 {
		r.sendOutcome("payment-returned")
		return
	}
	r.sendOutcome("payment-failed")
}

// sendOutcome sends the outcome if the guest's last response was "pending".
func (r *row) sendOutcome(template string) {
	if !r.order.PendingAt.IsZero() {
		r.sent(template)
		r.order.PendingAt = time.Time{}
	}
}

func (r *row) failRefund(code string) {
	r.advanceRefund(money.RefundFailed, code)
	r.sent("refund-failed")
	r.order.PendingAt = time.Time{}
}

// receipt returns the outcome of a purchase that is not in progress.
func (r *row) receipt() error {
	switch {
	case r.Method != "":
		return nil
	case r.State == booking.Confirming || r.State == booking.Canceling:
		return reserve.ErrPaymentPending
	case r.refunded():
		return &reserve.PaymentRefused{Code: "REFUNDED_PAYMENT"}
	}
	return reserve.ErrHoldExpired
}

// refunded reports whether a refund with money was made or is open.
func (r *row) refunded() bool {
	counts := func(f money.Refund) bool { return f.Amount > 0 && f.State != money.RefundRefused }
	return r.refund != nil && counts(*r.refund) || slices.ContainsFunc(r.closed, counts)
}

func (r *row) lastRefusal() error {
	if !r.order.PendingAt.IsZero() {
		return reserve.ErrPaymentPending
	}
	if r.refusal == "" {
		return reserve.ErrHoldExpired
	}
	return &reserve.PaymentRefused{Code: r.refusal}
}

func (r *row) trustKey(now time.Time) {
	switch {
	case r.blocked == "":
	case now.Before(r.BlockedUntil):
		r.postponeCheck(now.Add(doubtInterval))
	default:
		r.DoorlockKey, r.blocked = r.blocked, ""
	}
}

// replaceOrder gives a hold a new order. If a payment was attempted for the old order, it moves to a separate released row.
func (t *rows) replaceOrder(r *row, order string, now time.Time) {
	if r.payment != nil {
		old := *r
		old.ID, old.State, old.order.ReplacedAt, old.messages = booking.ReservationID(len(t.list)+1), booking.Released, now, nil
		r.closed = nil
		old.payment.Reservation = old.ID
		t.list = append(t.list, &old)
		r.payment, r.checkAt, r.closedAttempt = nil, time.Time{}, false
	}
	r.OrderID, r.order, r.refusal = order, money.Order{ID: order}, ""
}

// rows are the tables. Each method models one statement: the function of the same name in package postgres.
type rows struct {
	list     []*row
	webhooks []*webhook
	entries  []money.Entry
	compared time.Time            // the last complete comparison
	policy   booking.RefundPolicy // of the branch

	compensation booking.Compensation // of the branch
}

// book inserts the movements of a payment into the books, each once.
func (t *rows) book(r *row, p toss.Payment, now time.Time) {
	captures, reversals := 0, 0
	for _, e := range t.entries {
		switch {
		case e.Reservation == r.ID && e.Kind == money.Paid:
			captures++
		case e.Reservation == r.ID && e.Kind == money.Reversed:
			reversals++
		}
	}
	for _, e := range rule.Entries(p, captures, reversals) {
		if slices.ContainsFunc(t.entries, func(known money.Entry) bool { return known.Source == e.Source }) {
			continue
		}
		if e.At.IsZero() {
			e.At = now
		}
		e.Reservation, e.OrderID = r.ID, r.OrderID
		t.entries = append(t.entries, e)
	}
}

// webhook is a stored callback. Its id is its position in the list, starting at 1.
type webhook struct {
	transmission, order string
	applied             bool
}

// saveWebhook stores a callback, and returns its id or 0 if it is already stored.
func (t *rows) saveWebhook(transmission, order string) (id int) {
	for _, h := range t.webhooks {
		if h.transmission == transmission {
			return 0
		}
	}
	t.webhooks = append(t.webhooks, &webhook{transmission: transmission, order: order})
	return len(t.webhooks)
}

func (t *rows) lastWebhook(order string) (id int) {
	for i, h := range t.webhooks {
		if h.order == order {
			id = i + 1
		}
	}
	return id
}

func (t *rows) markWebhooksApplied(order string, last int) {
	for _, h := range t.webhooks[:last] {
		h.applied = h.applied || h.order == order
	}
}

var errOverlap = errors.New("reservation_no_overlap")

func (t *rows) byOrder(order string) *row {
	for _, r := range t.list {
		if r.OrderID == order {
			return r
		}
	}
	return nil
}

// free reports whether no reservation other than r occupies its slot.
func (t *rows) free(r *row) bool {
	for _, other := range t.list {
		if other != r && other.Room == r.Room && other.State.Live() && other.occupied().Overlaps(r.occupied()) {
			return false
		}
	}
	return true
}

// set sets the state of a reservation, or fails like the exclusion constraint.
func (t *rows) set(r *row, to booking.State) error {
	if to.Live() && !r.State.Live() && !t.free(r) {
		return errOverlap
	}
	r.State = to
	return nil
}

// insertHold inserts a hold, or returns nil if the slot is occupied.
func (t *rows) insertHold(room booking.RoomID, times booking.Interval, expires, now time.Time) *row {
	return t.insert(booking.Reservation{Room: room, Interval: times, ExpiresAt: expires}, now)
}

// insert inserts a hold, which may extend or replace another reservation.
func (t *rows) insert(hold booking.Reservation, now time.Time) *row {
	r := &row{Reservation: hold}
	r.ID, r.State, r.Source = booking.ReservationID(len(t.list)+1), booking.Hold, booking.Customer
	t.expireHolds(r, now)
	if !t.free(r) {
		return nil
	}
	t.list = append(t.list, r)
	return r
}

// expireHolds ends the expired holds that may be in the way of a row. Like the service, it allows for a margin of an hour, the
// longest that a room can have.
func (t *rows) expireHolds(in *row, now time.Time) {
	near := booking.Interval{Start: in.Start, End: in.End.Add(time.Hour)}
	for _, r := range t.list {
		if r != in && r.Room == in.Room && r.State == booking.Hold && !now.Before(r.ExpiresAt) && r.occupied().Overlaps(near) {
			r.State = booking.Expired
		}
	}
}

var errKeyTaken = errors.New("payment_payment_key_key")

func (t *rows) startAttempt(r *row, paymentKey string, now, check time.Time) error {
	for _, other := range t.list {
		if other != r && other.payment != nil && other.payment.PaymentKey == paymentKey {
			return errKeyTaken
		}
	}
	p := r.payment
	if p == nil {
		p = &money.Payment{Attempt: 0}
		r.payment = p
	} else {
		p.Answers++
	}
	p.Reservation, p.KeySet, p.PaymentKey, p.AttemptedAt, p.Checks = r.ID, string(toss.Widget), paymentKey, now, 0
	p.Attempt++
	p.ConfirmKey = fmt.Sprintf("confirm-%s-%d", r.OrderID, p.Attempt)
	p.Status, p.Balance = "", 0
	r.checkAt, r.closedAttempt = check, false
	return nil
}

func (r *row) saveProviderState(p toss.Payment, secret string) {
	if r.payment.PaymentKey == "" {
		r.payment.PaymentKey = p.PaymentKey
	}
	r.payment.Status, r.payment.Balance = p.Status, p.BalanceAmount
	if v := p.VirtualAccount; v != nil {
		r.payment.Account.Number = v.Number
	}
	if secret != "" {
		r.payment.Secret = []byte(secret)
	}
	r.payment.Answers++
}

func (r *row) countRefusal() { r.payment.Answers++; r.payment.PaymentKey = "" }

func (r *row) scheduleCheck(at time.Time) { r.payment.Checks, r.checkAt = 0, at }

// postponeCheck does nothing to a row whose payment has moved away with its order.
func (r *row) postponeCheck(at time.Time) {
	if r.payment != nil {
		r.payment.Checks++
		r.checkAt = at
	}
}

// claimCheck claims a check that is due.
func (r *row) claimCheck(now time.Time, lease time.Duration) bool {
	if r.payment == nil || r.checkAt.IsZero() || now.Before(r.checkAt) {
		return false
	}
	r.checkAt = now.Add(lease)
	return true
}

func (r *row) renewConfirmKey(old string) {
	if r.payment != nil && r.payment.ConfirmKey == old {
		r.payment.Attempt++
		r.payment.ConfirmKey = fmt.Sprintf("confirm-%s-%d", r.OrderID, r.payment.Attempt)
	}
}

func (r *row) markHeld(extend bool, keep time.Time) {
	r.State = booking.Hold
	if extend && !r.extended && r.ExpiresAt.Before(keep) {
		r.ExpiresAt = keep
	}
	r.extended = r.extended || extend
}

func (t *rows) markDone(r *row, method string) error {
	if err := t.set(r, booking.Done); err != nil {
		return err
	}
	r.keys++
	if r.policy == nil {
		r.policy = t.policy
	}
	r.Method, r.DoorlockKey, r.blocked, r.ExpiresAt = booking.Method(method), fmt.Sprintf("key-%d-%d", r.ID, r.keys), "", time.Time{}
	r.PaidAt = r.Start // any time that is not zero
	return nil
}

func (t *rows) markWaiting(r *row, due time.Time) error {
	if err := t.set(r, booking.WaitingForDeposit); err != nil {
		return err
	}
	r.Method, r.DoorlockKey, r.blocked, r.ExpiresAt, r.PaidAt = booking.VirtualAccount, "", "", due, time.Time{}
	return nil
}

func (r *row) markCanceling() { r.State, r.DoorlockKey, r.blocked = booking.Canceling, "", "" }
func (r *row) markCanceled()  { r.State, r.DoorlockKey, r.blocked = booking.Canceled, "", "" }

func (r *row) restoreKey() { r.State, r.DoorlockKey = booking.Done, r.revoked }

// openRefund inserts a refund, which has revoked a key unless revoked is empty.
func (r *row) openRefund(f money.Refund, revoked string) error {
	if r.refund != nil {
		return errors.New("a refund is open")
	}
	f.ID, f.Reservation, f.State, f.KeyRevoked, f.Attempt = int64(len(r.closed)+1), r.ID, money.RefundRequested, revoked != "", 1
	f.IdempotencyKey = fmt.Sprintf("cancel-%s-%d-1", r.OrderID, f.ID)
	r.refund, r.revoked = &f, revoked
	if f.KeepsStay {
		r.payment.Returned += f.Amount
	}
	return nil
}

func (r *row) advanceRefund(to money.RefundState, code string) {
	r.refund.State, r.refund.ErrorCode = to, code
	r.refund.Taken = r.refund.Taken || r.refund.AtBank()
	if to == money.RefundCompleted || to == money.RefundRefused {
		r.closed = append(r.closed, *r.refund)
		r.refund = nil
	}
}

// refundOutcome returns the error of a refund after an attempt to settle it. Another process may have settled it first.
func (r *row) refundOutcome(id int64, settled error) error {
	f := r.refund
	if f == nil || f.ID != id {
		i := slices.IndexFunc(r.closed, func(f money.Refund) bool { return f.ID == id })
		f = &r.closed[i]
	}
	switch {
	case f.State == money.RefundCompleted, f.State == money.RefundPending, f.TransferRejected():
		return nil
	case f.State == money.RefundRequested:
		return cmp.Or(settled, reserve.ErrPaymentPending)
	case f.State == money.RefundRefused && !f.KeepsStay && !f.KeyRevoked && r.State != booking.WaitingForDeposit: // the deposit arrived meanwhile
		return reserve.ErrAccountRequired
	}
	return &reserve.PaymentRefused{Code: f.ErrorCode}
}

// refundedNow returns the won that the open refund returned.
func (r *row) refundedNow(p toss.Payment) int {
	switch n := len(p.Cancels); {
	case p.ApprovedAt.IsZero():
		return 0
	case n > 0:
		return p.Cancels[n-1].Amount
	}
	return r.refund.Amount
}

// restate corrects the amount of a refund of everything.
func (r *row) restate(won int) {
	if f := r.refund; !f.Taken && (!f.Part || won == 0) {
		f.Amount = won
	}
}

func (r *row) renewRefundKey(id int64, old string) {
	if f := r.refund; f != nil && f.ID == id && f.IdempotencyKey == old {
		f.Attempt++
		f.IdempotencyKey = fmt.Sprintf("cancel-%s-%d-%d", r.OrderID, f.ID, f.Attempt)
	}
}

func (r *row) reopenRefund(account bool) {
	f := r.refund
	f.State, f.ErrorCode = money.RefundRequested, ""
	if account {
		f.Account, r.asked.account = sealed(true), true
	}
	f.IdempotencyKey += "-again"
	f.Attempt = 1
}
