// Package rule holds the decisions about money: what an answer of the payment provider means for a reservation, what to
// ask next, and what a wish to cancel comes to. They are functions of what is known, without a database, a clock or a
// provider; package reserve carries out what they say. So they can be tried with every state and answer there is, and
// simulated with crashes between any two steps.
//
// Two of them decide about everything else. Unknown is never failed: only what the provider says about a payment ends
// it. And money moves forward: what was captured is finished, and goes back only when the slot is gone or the amount is
// wrong.
package rule

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Snapshot is what stands here at the moment of a decision.
type Snapshot struct {
	Reservation booking.Reservation
	Payment     money.Payment // before the answer
	Refund      *money.Refund // the one that is not closed; nil: none
}

// Answer is what the provider says about a payment: it knows one, refuses it for good, or declines to give back what it
// still holds.
type Answer struct {
	Payment  toss.Payment
	Refused  bool // a charge; Payment is empty
	Declined bool // a refund; Payment is what the provider still holds
}

// Step is what an answer means for a reservation.
type Step string

// The steps.
const (
	Stay            Step = "stay"             // nothing changes
	RefusalReported Step = "refusal reported" // nothing changes; whoever asked is told that the charge was refused
	NoOp            Step = "no-op"            // nothing is asked for any more, and nothing came
	Open            Step = "open"             // the buyer has authenticated and the charge has not been made: ask again
	Refuse          Step = "refuse"           // nothing was charged, the hold is kept
	Confirm         Step = "confirm"          // the money is there, the reservation stands
	ConfirmIfFree   Step = "confirm if free"  // the money is there, the hold is not: it stands if its slot is free, else Late
	Late            Step = "late"             // money for a reservation that is over goes back
	Wait            Step = "wait"             // an account was issued
	WaitOn          Step = "wait on"          // its deposit has not come yet
	Reverse         Step = "reverse"          // the bank took the deposit back, the key is dead
	Drop            Step = "drop"             // the provider holds nothing any more: cancelled
	Refunded        Step = "refunded"         // what we asked to go back is back: cancelled
	Follow          Step = "follow"           // the bank is on with a refund, or done with it
	Restore         Step = "restore"          // the refund is declined: the reservation stands again, with the key it had
	Arrive          Step = "arrive"           // the deposit came while its account was being closed: the reservation stands
	Reopen          Step = "reopen"           // the provider keeps the account open: close it again in a while
	Fail            Step = "fail"             // the refund waits for a person
	Foreign         Step = "foreign"          // the payment is not the one we asked for: a person is told
	ForeignRefuse   Step = "foreign refuse"   // … and nothing was taken: the hold is kept
	ForeignReturn   Step = "foreign return"   // … and it was captured for us: it goes back
	NeedsReview     Step = "needs review"     // somebody did something by hand: a person has to look
)

// Kept reports whether what the answer says about the payment is to be kept: it is about our payment, and about one that
// we have asked for.
func (s Step) Kept() bool {
	switch s {
	case RefusalReported, NoOp, Foreign, ForeignRefuse, ForeignReturn:
		return false
	}
	return true
}

// After is the table of states against answers.
func (s Snapshot) After(a Answer, now time.Time) Step {
	state, p := s.Reservation.State, a.Payment
	switch {
	case a.Refused && state == booking.Confirming:
		return Refuse
	case a.Refused:
		return RefusalReported
	case s.idle() && (Unconfirmed(p.Status) || over(p, now)):
		return NoOp
	case state != booking.Canceling && !s.ours(p):
		return s.foreign(p)
	case over(p, now):
		return s.over()
	case a.Declined:
		return s.declined(p)
	case p.Status == toss.StatusDone:
		return s.captured()
	case p.Status == toss.StatusWaitingForDeposit:
		return s.awaited()
	case Unconfirmed(p.Status):
		return Open
	}
	return NeedsReview
}

// idle reports that no money is asked for any more, and none on its way back: the attempt was refused, or there was none.
func (s Snapshot) idle() bool { return GivenUp(s.Reservation.State) && s.Refund == nil }

// GivenUp reports whether a reservation with an order is in a state in which no charge is under way, and may still come:
// a request of an attempt that was refused may be on its way, slower than the one that was answered.
func GivenUp(state booking.State) bool {
	return state == booking.Hold || state == booking.Expired || state == booking.Released
}

// ours reports whether a payment is the one we asked for.
func (s Snapshot) ours(p toss.Payment) bool {
	r, key := s.Reservation, s.Payment.PaymentKey
	return p.OrderID == r.OrderID && p.TotalAmount == r.Amount && (key == "" || key == p.PaymentKey)
}

// foreign: what was captured for us goes back; nobody gets a key.
func (s Snapshot) foreign(p toss.Payment) Step {
	switch {
	case s.Reservation.State != booking.Confirming:
		return Foreign
	case Unconfirmed(p.Status), over(p, time.Time{}):
		return ForeignRefuse
	}
	return ForeignReturn
}

// over reports whether the provider holds nothing of a payment and never will. An account that waits by its status
// takes no more money once it has expired.
func over(p toss.Payment, now time.Time) bool {
	if p.FullyCanceled() || p.Status == toss.StatusExpired || p.Status == toss.StatusAborted {
		return true
	}
	v := p.VirtualAccount
	return p.Status == toss.StatusWaitingForDeposit && v != nil && v.Expired && now.After(v.DueDate)
}

func (s Snapshot) over() Step {
	switch s.Reservation.State {
	case booking.Confirming:
		return Refuse
	case booking.WaitingForDeposit, booking.Done:
		return Drop
	case booking.Canceling:
		return Refunded
	}
	if s.Refund != nil {
		return Follow // still under way at the bank, or of money that came too late
	}
	return Stay
}

// declined: the provider will not give the money back as asked, and has not.
func (s Snapshot) declined(p toss.Payment) Step {
	f := s.Refund
	switch {
	case f == nil || f.State != money.RefundRequested:
		return Stay // someone else has brought it to an end
	case s.Reservation.State != booking.Canceling, f.By == ByAmount:
		return Fail
	case p.Status == toss.StatusDone && f.RevokedKey != "":
		return Restore
	case p.Status == toss.StatusDone:
		return Arrive
	}
	return Reopen
}

// captured: the provider has the money.
func (s Snapshot) captured() Step {
	switch s.Reservation.State {
	case booking.Hold, booking.Confirming, booking.WaitingForDeposit:
		return Confirm
	case booking.Expired:
		return ConfirmIfFree
	case booking.Released, booking.Canceled:
		return s.Late()
	}
	return Stay // it stands, or the refund is under way
}

// Late is what becomes of money for a reservation that is over.
func (s Snapshot) Late() Step {
	if s.Refund != nil {
		return Stay // it is known, and on its way back
	}
	return Late
}

// awaited: a virtual account waits for its money.
func (s Snapshot) awaited() Step {
	switch s.Reservation.State {
	case booking.Hold, booking.Confirming:
		return Wait
	case booking.Done:
		return Reverse
	case booking.WaitingForDeposit:
		return WaitOn
	}
	return Stay
}

// Unconfirmed reports that the buyer has authenticated and the charge has not been made.
func Unconfirmed(status string) bool {
	return status == toss.StatusReady || status == toss.StatusInProgress
}

// Who cancels when nobody does.
const (
	ByOverdue  = "system:overdue"  // the deposit did not come in time
	ByCallback = "system:callback" // the provider has told that the account is cancelled
	ByAmount   = "system:amount"   // the provider's payment is not the one we asked for
	ByLate     = "system:late"     // money for a reservation that is over
)

// AtBank is where a refund stands by what the provider says of the bank's part of it.
func AtBank(status string) money.RefundState {
	switch status {
	case "PENDING":
		return money.RefundPending
	case "FAILED", "PARTIAL_FAILED":
		return money.RefundFailed
	}
	return money.RefundCompleted
}
