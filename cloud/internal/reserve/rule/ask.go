package rule

import (
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Question is what to ask the provider about a reservation.
type Question string

// The questions.
const (
	SendRefund   Question = "send refund"   // the refund that was written down
	CloseAccount Question = "close account" // the deposit is overdue: have it closed, by way of a refund
	LookUp       Question = "look up"       // how the payment is
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

// Reading is what the provider's reply to a request is good for.
type Reading string

// The readings.
const (
	Act      Reading = "act"      // it is an answer
	Refusal  Reading = "refusal"  // it is an answer: no charge
	Declined Reading = "declined" // it is an answer: no refund
	Resend   Reading = "resend"   // send the confirmation once more
	AskAgain Reading = "ask"      // look what came of it, at once
	AskLater Reading = "later"    // nobody can tell yet
)

// Found reads the reply to a look-up. inFlight: a request of the attempt may still be on its way to the provider, or at
// work there, and "not found" means "not yet".
func (s Snapshot) Found(p toss.Payment, err error, inFlight bool) Reading {
	confirming := s.Reservation.State == booking.Confirming
	switch {
	case err == nil && confirming && Unconfirmed(p.Status) && s.Payment.KeySet == string(toss.Widget):
		return Resend
	case err == nil:
		return Act
	case toss.ClassOf(err) == toss.NotFound && (!confirming || !inFlight):
		return Refusal
	}
	return AskLater
}

// Confirmed reads the reply to a confirmation that was sent for the first time.
func Confirmed(err error) Reading {
	switch {
	case err == nil:
		return Act
	case toss.ClassOf(err) == toss.Unknown, toss.ClassOf(err) == toss.AlreadyProcessed:
		return AskAgain
	}
	return Refusal
}

// Resent reads the reply to a confirmation that was sent once more.
func Resent(err error) Reading {
	if err == nil {
		return Act
	}
	switch toss.ClassOf(err) {
	case toss.Unknown, toss.AlreadyProcessed, toss.RetryLater:
		return AskLater
	}
	return Refusal
}

// Cancelled reads the reply to a refund that was anything but a plain yes: the provider also declines what is done
// already, so the payment was looked up afterwards.
func Cancelled(cause error, p toss.Payment, lookedUp error) Reading {
	switch {
	case lookedUp != nil:
		return AskLater
	case over(p, time.Time{}):
		return Act
	}
	switch toss.ClassOf(cause) {
	case toss.Unknown, toss.RetryLater, toss.AlreadyCanceled:
		return AskLater
	}
	return Declined
}

// Answered reports whether the provider has answered a request for good: it will only replay that answer for the same
// Idempotency-Key. While it is still at work on the key (409) the key stays.
func Answered(err error) bool {
	const stillAtWork = 409
	var e *toss.Error
	return errors.As(err, &e) && e.HTTPStatus != 0 && e.HTTPStatus != stillAtWork
}

// CallbackAction is what a callback with the right secret does that takes away what the provider's answer leaves.
type CallbackAction string

// What it does.
const (
	Nothing CallbackAction = "nothing"
	Close   CallbackAction = "close"   // make sure that the account takes no more money
	Believe CallbackAction = "believe" // the key goes, as if the provider had answered so
)

// Callback is what a callback of that status comes to.
func (s Snapshot) Callback(status string) CallbackAction {
	if s.Reservation.Method != booking.VirtualAccount {
		return Nothing
	}
	switch state := s.Reservation.State; {
	case status == toss.StatusCanceled && state == booking.WaitingForDeposit:
		return Close
	case (status == toss.StatusCanceled || status == toss.StatusWaitingForDeposit) && state == booking.Done:
		return Believe
	}
	return Nothing
}

// CancelAction is what a wish to cancel comes to.
type CancelAction string

// The endings.
const (
	Release     CancelAction = "release"      // a hold is given back
	Pending     CancelAction = "pending"      // the provider is being asked: not now
	Refund      CancelAction = "refund"       // money goes back, or an account is closed
	NeedAccount CancelAction = "need account" // a deposit goes back to an account that has to be named
	End         CancelAction = "end"          // the provider knows nothing of it
	Join        CancelAction = "join"         // the refund is under way
	Over        CancelAction = "over"         // it has ended already
)

// Cancel is what a wish to cancel a reservation comes to. charged says that the provider knows of it, account that
// whoever cancels has named where a deposit goes.
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
