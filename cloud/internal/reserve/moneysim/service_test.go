package moneysim

import (
	"cmp"
	"errors"
	"sync"
	"time"

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
	changed  func(r *row, what string)   // called in the transaction of a change
	gave     func(root, r *row, won int) // called in the transaction of a compensation
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
	q := question{row: r, snapshot: rule.Snapshot{Reservation: t.reservation(r), Order: r.order, Anchor: t.anchor(r), Exchanged: t.exchanged(r), Doubted: t.doubted(r)}, callback: t.lastWebhook(r.OrderID)}
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
	returned bool // the provider has executed the refund that was requested
}

func refusal(err error) *reserve.PaymentRefused {
	var e *toss.Error
	if errors.As(err, &e) {
		return &reserve.PaymentRefused{Code: e.Code, Message: e.Message}
	}
	return &reserve.PaymentRefused{Message: err.Error()}
}

// unpaid returns the refusal for a payment that ended without a charge.
func unpaid(p toss.Payment) *reserve.PaymentRefused {
	if p.Failure != nil {
		return &reserve.PaymentRefused{Code: p.Failure.Code}
	}
	return &reserve.PaymentRefused{Code: cmp.Or(p.Status, "NOT_PAID")}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
