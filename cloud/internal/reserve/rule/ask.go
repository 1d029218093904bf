package rule

import (
	"errors"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Question is what to ask the provider about a reservation.
type Question string

// The questions.
const (
	SendRefund   Question = "send refund"   // the refund that is recorded
	CloseAccount Question = "close account" // the deposit is overdue: have the account closed, by way of a refund
	LookUp       Question = "look up"       // the state of the payment
)

// Next is what to ask about a reservation that is not settled.
func (s Snapshot) Next(now time.Time) Question {
	r := s.Reservation
	switch {
	case s.Refund != nil && s.Refund.State == money.RefundRequested:
		return SendRefund
	case r.State == booking.WaitingForDeposit && !now.Before(r.ExpiresAt):
		return CloseAccount
	}
	return LookUp
}

// Reading classifies the provider's reply to a request.
type Reading string

// The readings.
const (
	Act      Reading = "act"      // it is an answer
	Refusal  Reading = "refusal"  // it is an answer: no charge
	Declined Reading = "declined" // it is an answer: no refund
	Resend   Reading = "resend"   // send the request, once more if it was sent before
	AskAgain Reading = "ask"      // look up the outcome, at once
	AskLater Reading = "later"    // the outcome is not known yet
	Rephrase Reading = "rephrase" // the deposit is not as the request assumed: store the look-up, and send another request
)

// Found reads the reply to a look-up.
func (s Snapshot) Found(p toss.Payment, err error, now time.Time) Reading {
	confirming := s.Reservation.State == booking.Confirming
	switch {
	case err == nil && confirming && unconfirmed(p.Status) && toss.KeySet(s.Payment.KeySet).Kind() == toss.Widget && s.Chargeable(now):
		return Resend
	case err == nil:
		return Act
	case toss.ClassOf(err) == toss.NotFound && (!confirming || !s.InFlight(now)):
		return Refusal
	}
	return AskLater
}

// Confirmed reads the reply to a confirmation that was sent for the first time.
func Confirmed(err error) Reading {
	switch {
	case err == nil:
		return Act
	case toss.KeyRejected(err):
		return AskLater // our own fault, and nothing happened: the order is charged once the key is right
	case toss.ClassOf(err) == toss.Unknown, toss.ClassOf(err) == toss.AlreadyProcessed:
		return AskAgain
	}
	return Refusal
}

// Resent reads the reply to a confirmation that was sent once more.
func Resent(err error) Reading {
	switch {
	case err == nil:
		return Act
	case toss.KeyRejected(err):
		return AskLater
	}
	switch toss.ClassOf(err) {
	case toss.Unknown, toss.AlreadyProcessed, toss.RetryLater:
		return AskLater
	}
	return Refusal
}

// Transfers reads the look-up of a deposit before the refund in progress is sent. The provider has one state for all transfers of a
// payment, so no request is sent whose outcome could not be distinguished from that of another one: Act means that the refund is executed,
// Declined that another transfer is open or rejected, or that the bank has taken the deposit back while the reservation may continue,
// and AskLater that a cancellation waits for the bank. Otherwise Resend.
func (s Snapshot) Transfers(p toss.Payment) Reading {
	f, at, other := s.Refund, AtBank(p.RefundStatus()), s.Unrecorded(p)
	listed := slices.ContainsFunc(p.Cancels, func(c toss.Cancellation) bool { return c.Amount == f.Amount })
	switch {
	case p.Status == toss.StatusWaitingForDeposit && s.keepsStay():
		return Declined // nothing is left to return, and the request would close the account
	case f.Taken && at != money.RefundFailed:
		return Act // repeated in the dashboard, which sends no callback
	case at == money.RefundFailed && s.Payment.Rejected > 0:
		return Declined // the provider still shows a rejected transfer that was returned by hand: the refund would look rejected, too, and be sent twice
	case f.Taken && p.BalanceAmount > 0 && !listed:
		return Declined // the provider recognises a rejected transfer by its amount, and would return another amount once more
	case f.Taken, other == f.Amount, other == 0 && (listed || at == money.RefundCompleted): // of an earlier attempt, or the only one
		return Resend
	case at == money.RefundPending && !f.KeepsStay:
		return AskLater
	case at != money.RefundCompleted:
		return Declined // a refund that keeps the stay and waits for days would prevent its cancellation
	}
	return Resend
}

// contradictions is how many attempts at a refund the provider may answer with an error that is in no table, while it
// still holds the money, before the error counts as a refusal. Attempts are requests with a key of their own.
const contradictions = 3

// Cancelled reads the reply to the refund in progress, if it was not a plain success. The provider also declines what is done
// already, so the payment was looked up afterwards.
func (s Snapshot) Cancelled(cause error, p toss.Payment, lookedUp error, now time.Time) Reading {
	switch {
	case lookedUp != nil, toss.KeyRejected(cause):
		return AskLater
	case s.depositMoved(p):
		return Rephrase
	case s.Refund.Part:
		return partCancelled(cause, s.Refund.Attempt)
	case over(p, time.Time{}) && !s.rejectedBefore(p):
		return Act
	case p.Status == toss.StatusWaitingForDeposit && !s.reopens(now):
		return AskLater // nothing was paid, so there is nothing to refund: the account is closed later, or expires
	}
	switch toss.ClassOf(cause) {
	case toss.RetryLater:
		return AskLater
	case toss.Unknown, toss.AlreadyCanceled:
		if !Rejected(cause) || s.Refund.Attempt < contradictions {
			return AskLater
		}
	}
	return Declined
}

// depositMoved reports whether the bank has reversed the deposit that the refund in progress returns, or whether a deposit
// has arrived again. The provider accepts an amount and an account of the payer only while it holds a deposit. A refund that
// keeps the stay is not affected: the reservation follows the deposit.
func (s Snapshot) depositMoved(p toss.Payment) bool {
	switch waited := s.Payment.Status == toss.StatusWaitingForDeposit; {
	case s.keepsStay():
		return false
	case p.Status == toss.StatusWaitingForDeposit:
		return !waited
	case p.Status == toss.StatusDone:
		return waited && len(s.Refund.Account) > 0
	}
	return false
}

// partCancelled reads the reply to a refund of a part that was not a plain success. A look-up cannot tell by which request a
// part was returned, so only a reply to this request counts.
func partCancelled(cause error, attempt int) Reading {
	switch class := toss.ClassOf(cause); {
	case class == toss.RetryLater, !Rejected(cause):
		return AskLater
	case class == toss.Unknown && attempt < contradictions:
		return AskLater
	}
	return Declined
}

// HTTP statuses after which a request may be, or may still be, executed.
const (
	requestTimeout  = 408
	conflict        = 409 // a request with the same Idempotency-Key is being executed
	tooEarly        = 425
	tooManyRequests = 429
)

// Rejected reports whether the provider answered that it did not accept the request, with whatever code, or the client did not
// send the request because it is invalid.
func Rejected(err error) bool {
	var e *toss.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.HTTPStatus {
	case 0:
		return e.Code != ""
	case requestTimeout, conflict, tooEarly, tooManyRequests:
		return false
	}
	return e.HTTPStatus >= 400 && e.HTTPStatus < 500
}

// Answered reports whether the provider has finally answered a request: it only replays that answer for the same
// Idempotency-Key. While it is still executing the request (409) the key stays.
func Answered(err error) bool {
	var e *toss.Error
	return errors.As(err, &e) && e.HTTPStatus != 0 && e.HTTPStatus != conflict
}

// CallbackAction is what a callback with the right secret leads to when the provider's answer does not confirm it.
type CallbackAction string

// The actions.
const (
	Nothing   CallbackAction = "nothing"
	BlockDoor CallbackAction = "block door" // the key opens nothing while the provider is asked again
)

// Callback is the action for a callback of that status. It never changes the reservation: money follows the provider's
// answer only. A callback that repeats the provider's answer leads to nothing.
func (s Snapshot) Callback(status string) CallbackAction {
	if status == s.Payment.Status {
		return Nothing
	}
	lost := status == toss.StatusCanceled || status == toss.StatusPartialCanceled || status == toss.StatusWaitingForDeposit
	if lost && s.Reservation.Method == booking.VirtualAccount && s.Reservation.State == booking.Done {
		return BlockDoor
	}
	return Nothing
}

// CancelAction is what a request to cancel leads to.
type CancelAction string

// The actions.
const (
	Release     CancelAction = "release"      // a hold is released
	Pending     CancelAction = "pending"      // the provider is being asked: not now
	Refund      CancelAction = "refund"       // money is returned, or an account closed
	NeedAccount CancelAction = "need account" // a deposit is returned to an account that has to be named
	End         CancelAction = "end"          // the provider has no such order
	Join        CancelAction = "join"         // the refund is in progress
	Over        CancelAction = "over"         // it has ended already
)

// Cancel is what a request to cancel a reservation leads to. charged: the provider has a payment of it, account
// that the request names an account for a deposit.
func Cancel(r booking.Reservation, charged, account bool) CancelAction {
	switch r.State {
	case booking.Hold:
		return Release
	case booking.Confirming:
		return Pending
	case booking.Done, booking.WaitingForDeposit:
		switch {
		case !charged:
			return End
		case r.State == booking.Done && r.Method == booking.VirtualAccount && !account:
			return NeedAccount
		}
		return Refund
	case booking.Canceling:
		return Join
	}
	return Over
}
