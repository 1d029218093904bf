// Package rule holds the decisions about money: what the provider's answer means for a reservation, what to ask next, and
// what a request to cancel leads to. They are pure functions of a [Snapshot] and the time, without database, clock or
// provider; package reserve executes them. So every state can be tested against every answer, and simulated with crashes
// between any two steps.
//
// Three principles decide about the rest. Unknown never means failed: only the provider's statement about a payment ends
// it. Money moves forward: a captured payment is finished, and refunded only if the slot is gone, the amount is wrong, the
// guest left, or the stay has no useful time left. And nothing is charged for a stay that can no longer be used.
package rule

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Snapshot is our record of a reservation at the moment of a decision.
type Snapshot struct {
	Reservation booking.Reservation
	Order       money.Order
	Payment     money.Payment // before the answer
	Refund      *money.Refund // the refund that is not closed; nil: none
	// Anchor is the reservation that this one extends or replaces.
	Anchor booking.Reservation
	// Exchanged: a confirmed exchange has replaced this reservation, or another one the reservation that this one replaces.
	Exchanged bool
	// Doubted: another extension before this one is blocked (see BlockDoor). Its time does not count now and may count again.
	Doubted bool
}

// Answer is the provider's statement about a payment: its state, the final refusal of a charge, or the refusal to return
// the money it still holds.
type Answer struct {
	Payment  toss.Payment
	Refused  bool // a charge; Payment is empty
	Declined bool // a refund; Payment is what the provider still holds
	Returned bool // the refund that was requested has been executed
}

// Step is what an answer means for a reservation.
type Step string

// The steps.
const (
	Stay            Step = "stay"             // nothing changes
	RefusalReported Step = "refusal reported" // nothing changes; the caller learns that the charge was refused
	NoOp            Step = "no-op"            // no money is expected any more, and none came
	Open            Step = "open"             // the buyer has authenticated and the charge has not been made: ask again
	Lapse           Step = "lapse"            // nothing was charged and nothing will be: the hold ends
	Refuse          Step = "refuse"           // nothing was charged, the hold is kept
	Confirm         Step = "confirm"          // the money is there: the reservation is confirmed
	ConfirmIfFree   Step = "confirm if free"  // the money is there, the hold is not: confirmed if its slot is free, else Late
	Late            Step = "late"             // money, or an open account, for a reservation that is over: return it, or close it
	Wait            Step = "wait"             // an account was issued
	WaitOn          Step = "wait on"          // its deposit has not arrived yet
	Reverse         Step = "reverse"          // the bank took the deposit back: the key is revoked
	CloseReversed   Step = "close reversed"   // … of a reservation that is over, and no refund was sent: the account is closed
	Drop            Step = "drop"             // the provider holds nothing any more: canceled
	Partial         Step = "partial"          // a part was returned at the provider: the reservation stays confirmed
	FollowPart      Step = "follow part"      // … and is not recorded yet as a refund
	Refunded        Step = "refunded"         // the refund we asked for is done: canceled
	Follow          Step = "follow"           // the bank works on a refund, or has finished it
	Restore         Step = "restore"          // the refund is declined: the reservation is confirmed again, with the key it had
	Arrive          Step = "arrive"           // the deposit arrived while its account was being closed: confirmed
	ReturnDeposit   Step = "return deposit"   // it did, for a stay without use: the refund waits for an account
	Reopen          Step = "reopen"           // the provider keeps the account open: close it again later
	Fail            Step = "fail"             // the refund waits for an administrator
	Returned        Step = "returned"         // a refund that keeps the stay is done: the reservation stays
	NotReturned     Step = "not returned"     // … is declined: the reservation stays
	Foreign         Step = "foreign"          // the payment is not the one we asked for: an administrator is alerted
	ForeignRefuse   Step = "foreign refuse"   // … and nothing was charged: the hold is kept
	ForeignReturn   Step = "foreign return"   // … and it was captured for us: it is refunded
	NeedsReview     Step = "needs review"     // a payment was changed by hand at the provider: an administrator has to check it
)

// Kept reports whether the provider's state is stored: it is about our payment, and about one that we asked for.
func (s Step) Kept() bool {
	switch s {
	case RefusalReported, NoOp, Lapse, Foreign, ForeignRefuse, ForeignReturn:
		return false
	}
	return true
}

// Trusts reports whether the answer agrees with our record of a stay, or changes no more than a refund that keeps it.
func (s Step) Trusts() bool {
	switch s {
	case Stay, Partial, FollowPart, Follow, Returned:
		return true
	}
	return false
}

// InFlightLimit bounds how long a request to the provider may be on its way, or in execution there.
const InFlightLimit = 80 * time.Second

// SessionLimit is longer than the provider accepts a confirmation after the buyer has authenticated, 10 minutes.
const SessionLimit = 15 * time.Minute

// minUse is the least time of a stay that is worth confirming late; of a shorter stay it is half.
const minUse = 10 * time.Minute

// After is the table of states against answers.
func (s Snapshot) After(a Answer, now time.Time) Step {
	state, p := s.Reservation.State, a.Payment
	switch {
	case a.Refused && state == booking.Confirming:
		return s.refused(now)
	case a.Refused:
		return RefusalReported
	case s.idle() && (unconfirmed(p.Status) || over(p, now)):
		return NoOp
	case state != booking.Canceling && !s.ours(p), state == booking.Confirming && p.Currency != toss.Won:
		return s.foreign(p)
	case s.keepsStay() && (a.Returned || a.Declined):
		return s.keptRefund(a)
	case !a.Returned && s.rejectedBefore(p):
		if a.Declined {
			return s.declined(p, now)
		}
		return Stay
	case over(p, now):
		return s.over(p, now)
	case a.Returned && state == booking.Canceling && s.partReturned(p):
		return Refunded // by the refund policy
	case a.Returned && state == booking.Canceled && s.partReturned(p):
		return Follow // the rest that the refund policy does not leave with the shop
	case a.Declined:
		return s.declined(p, now)
	case p.Status == toss.StatusDone:
		return s.captured(p, now)
	case p.Status == toss.StatusPartialCanceled && (state == booking.Done || state == booking.Canceled):
		return s.partial(p)
	case p.Status == toss.StatusPartialCanceled && state != booking.Canceling:
		return s.captured(p, now) // a part was returned before the capture was known here
	case p.Status == toss.StatusPartialCanceled && s.explained(p, a.Returned):
		return Stay
	case p.Status == toss.StatusWaitingForDeposit:
		return s.awaited(p, now)
	case unconfirmed(p.Status):
		return s.unconfirmed(now)
	}
	return NeedsReview
}

// Useful reports whether enough of the stay is left to confirm it: doors still open, and at least 10 minutes, or half of a
// shorter stay, remain. A stay that was bought after its start is judged by what was left then.
func (s Snapshot) Useful(now time.Time) bool {
	stay := s.Reservation.Interval
	if s.Payment.AttemptedAt.After(stay.Start) {
		stay.Start = s.Payment.AttemptedAt
	}
	return !s.Obsolete(now) && now.Before(stay.LastUnlock()) && stay.End.Sub(now) >= min(minUse, stay.Length()/2)
}

// Obsolete reports whether an extension has lost the stay that it follows, the stay that an exchange replaces has begun, or
// the guest has exchanged the stay already.
func (s Snapshot) Obsolete(now time.Time) bool {
	switch r, anchor := s.Reservation, s.Anchor; {
	case s.Exchanged:
		return true
	case r.Extends != 0:
		return anchor.State != booking.Done || anchor.Room != r.Room || anchor.Stay().End.Before(r.Start) && !s.Doubted
	case r.Replaces != 0:
		return anchor.State == booking.Done && !now.Before(anchor.Start)
	}
	return false
}

// Chargeable reports whether the order may still be charged: the guest has not left and the stay is useful.
func (s Snapshot) Chargeable(now time.Time) bool { return !s.Order.Abandoned() && s.Useful(now) }

// InFlight reports whether a request of the attempt may still be on its way to the provider: then "not found" means "not
// yet".
func (s Snapshot) InFlight(now time.Time) bool {
	return now.Sub(s.Payment.AttemptedAt) < InFlightLimit
}

// SessionOver reports whether the provider's payment session of the attempt has ended: it accepts no charge any more.
func (s Snapshot) SessionOver(now time.Time) bool {
	return now.Sub(s.Payment.AttemptedAt) >= SessionLimit
}

// idle reports that no money is expected and none is being returned: the attempt was refused, or there was none.
func (s Snapshot) idle() bool { return GivenUp(s.Reservation.State) && s.Refund == nil }

// GivenUp reports whether a reservation with an order is in a state without a confirmation in progress. A charge may still
// arrive: a request of a refused attempt may be slower than the one that was answered.
func GivenUp(state booking.State) bool {
	return state == booking.Hold || state == booking.Expired || state == booking.Released
}

// ours reports whether a payment is the one we asked for.
func (s Snapshot) ours(p toss.Payment) bool {
	r, key := s.Reservation, s.Payment.PaymentKey
	return p.OrderID == r.OrderID && p.TotalAmount == r.Amount && (key == "" || key == p.PaymentKey)
}

// foreign: a payment that was captured for us is refunded; no key is created.
func (s Snapshot) foreign(p toss.Payment) Step {
	switch {
	case s.Reservation.State != booking.Confirming:
		return Foreign
	case unconfirmed(p.Status), over(p, time.Time{}):
		return ForeignRefuse
	}
	return ForeignReturn
}

// over reports whether the provider holds nothing of a payment and never will. An account that waits by its status
// accepts no deposit once it has expired.
func over(p toss.Payment, now time.Time) bool {
	if p.FullyCanceled() || p.Status == toss.StatusExpired || p.Status == toss.StatusAborted {
		return true
	}
	v := p.VirtualAccount
	return p.Status == toss.StatusWaitingForDeposit && v != nil && v.Expired && now.After(v.DueDate)
}

func (s Snapshot) over(p toss.Payment, now time.Time) Step {
	switch s.Reservation.State {
	case booking.Confirming:
		if AtBank(p.RefundStatus()) != money.RefundCompleted { // paid and returned meanwhile, and the bank may reject the transfer
			return Drop
		}
		return s.refused(now)
	case booking.Done:
		sent := s.Payment.Returned
		if s.keepsStay() && s.Refund.Unsent() {
			sent -= s.Refund.Amount
		}
		if p.TotalAmount > 0 && sent >= p.TotalAmount {
			return s.follow(Stay) // refunds that keep the stay returned everything
		}
		return Drop
	case booking.WaitingForDeposit:
		return Drop
	case booking.Canceling:
		return Refunded
	}
	switch {
	case s.Refund != nil:
		return Follow // in progress at the bank, or of money that came too late
	case s.Payment.Retained > 0 && s.Payment.SettledOutside == 0 && s.Unrecorded(p) > 0:
		return FollowPart // what the refund policy had left with the shop
	}
	return Stay
}

// refused: the provider did not charge. The guest keeps the hold for another attempt, if he wants one and it can be used.
func (s Snapshot) refused(now time.Time) Step {
	if s.Chargeable(now) {
		return Refuse
	}
	return Lapse
}

// unconfirmed: the charge has not been made. It is not asked for again once the guest has left or the stay is useless; a
// request of ours that is on its way may still make it.
func (s Snapshot) unconfirmed(now time.Time) Step {
	if s.Reservation.State == booking.Confirming && !s.Chargeable(now) && !s.InFlight(now) {
		return Lapse
	}
	return Open
}

// declined: the provider does not return the money as asked, and has not returned it.
func (s Snapshot) declined(p toss.Payment, now time.Time) Step {
	f := s.Refund
	switch {
	case f == nil || f.State != money.RefundRequested:
		return Stay // another process has ended it
	case !s.reopens(now):
		return Fail
	case p.Status == toss.StatusDone && f.KeyRevoked:
		return Restore
	case p.Status == toss.StatusDone && !s.Useful(now):
		return ReturnDeposit
	case p.Status == toss.StatusDone:
		return Arrive
	case p.Status == toss.StatusPartialCanceled && f.KeyRevoked && p.TotalAmount-p.BalanceAmount == s.Payment.Returned:
		return Restore // as before: only refunds that keep the stay were made
	case p.Status == toss.StatusPartialCanceled:
		return Fail
	}
	return Reopen
}

// reopens reports whether the reservation continues if its refund is declined. Others have ended, another amount was paid for
// them, or a confirmed stay has meanwhile been exchanged or lost the stay that it extends.
func (s Snapshot) reopens(now time.Time) bool {
	if s.Reservation.State != booking.Canceling || s.Refund.By == ByAmount {
		return false
	}
	return !s.Refund.KeyRevoked || !s.Exchanged && (s.Reservation.Extends == 0 || !s.Obsolete(now))
}

// captured: the provider holds the money.
func (s Snapshot) captured(p toss.Payment, now time.Time) Step {
	chargeable := p.Currency == toss.Won && s.Chargeable(now)
	switch s.Reservation.State {
	case booking.Hold, booking.Confirming:
		if chargeable {
			return Confirm
		}
		return s.Late()
	case booking.WaitingForDeposit:
		if s.Useful(now) || s.inTime(now) {
			return Confirm
		}
		return s.Late()
	case booking.Expired:
		if chargeable {
			return ConfirmIfFree
		}
		return s.Late()
	case booking.Canceled:
		if s.keeps(p) {
			return s.follow(Stay)
		}
		return s.Late()
	case booking.Released:
		return s.Late()
	case booking.Done:
		return s.follow(Stay)
	}
	return Stay // confirmed, or the refund is in progress
}

// inTime reports whether a deposit is known before it was due, while doors open.
func (s Snapshot) inTime(now time.Time) bool {
	return !s.Obsolete(now) && !now.After(s.Reservation.ExpiresAt) && now.Before(s.Reservation.LastUnlock())
}

// Late is the step for money, or an account that waits for it, of a reservation that is over.
func (s Snapshot) Late() Step {
	if s.Refund != nil || s.Payment.SettledOutside > 0 {
		return Stay // it is known: being returned, or returned outside the provider
	}
	return Late
}

// partial: a part of the money was returned at the provider. The rest of a canceled reservation is returned, unless
// the refund policy left it with the shop.
func (s Snapshot) partial(p toss.Payment) Step {
	switch {
	case s.Reservation.State == booking.Canceled && !s.keeps(p):
		return s.follow(s.Late())
	case s.Refund == nil && s.Unrecorded(p) > 0:
		return FollowPart
	}
	return s.follow(Partial)
}

// Unrecorded returns the won of a payment that were returned at the provider, not by us, and are not recorded. A refund in progress
// counts as not executed. All refunds together return no more than was paid.
func (s Snapshot) Unrecorded(p toss.Payment) int {
	if s.Reservation.State == booking.Canceled { // the refund policy may have returned a part
		return max(0, min(s.takenOff(p), p.TotalAmount-s.Payment.Returned))
	}
	recorded := s.Payment.Returned
	if s.keepsStay() {
		recorded -= s.Refund.Amount
	}
	return max(0, p.TotalAmount-p.BalanceAmount-recorded)
}

// takenOff returns the won that the provider has taken off the balance of a captured payment since the last answer.
func (s Snapshot) takenOff(p toss.Payment) int {
	switch s.Payment.Status {
	case toss.StatusDone, toss.StatusPartialCanceled:
		return max(0, s.Payment.Balance-p.BalanceAmount)
	}
	return 0
}

// Joined returns the won that were returned at the provider, not by us, while the bank works on a refund or has rejected it. The
// provider has one state for all transfers of a payment, so they end together with the refund. All refunds together return no more
// than was paid: if the balance contains the amount of a rejected transfer again, that amount is returned once.
func (s Snapshot) Joined(p toss.Payment) int {
	if s.Refund == nil || !s.Refund.AtBank() {
		return 0
	}
	recorded := s.Payment.Returned + s.Payment.SettledOutside
	if !s.Refund.KeepsStay {
		recorded += s.Refund.Amount
	}
	return max(0, min(s.takenOff(p), p.TotalAmount-recorded))
}

// ReturnedTwice returns the won that were returned at the provider after an administrator had returned them by hand; 0 if the answer shows no
// further refund.
func (s Snapshot) ReturnedTwice(p toss.Payment) int {
	if s.takenOff(p) == 0 {
		return 0
	}
	return max(0, s.Payment.SettledOutside-s.Payment.Rejected-p.BalanceAmount)
}

// CanceledBeside returns the won of a reservation that has ended which were returned at the provider, not by us, beside the part in progress.
// The provider has declined that part. No other look-up would find them: the balance without them is stored.
func (s Snapshot) CanceledBeside(p toss.Payment) int {
	switch {
	case s.Reservation.State != booking.Canceled || s.Payment.SettledOutside > 0:
		return 0
	case s.Payment.Retained > 0: // the refund policy had left them with the shop
		return s.takenOff(p)
	case p.FullyCanceled() && AtBank(p.RefundStatus()) != money.RefundCompleted:
		return max(0, p.CanceledAmount()-s.Payment.Returned+s.Refund.Amount)
	}
	return 0
}

// keeps reports whether the refund policy left what the provider still holds with the shop.
func (s Snapshot) keeps(p toss.Payment) bool {
	return s.Payment.Retained > 0 && p.BalanceAmount <= s.Payment.Retained
}

// Left returns the won of a paid reservation that are not refunded.
func (s Snapshot) Left() int {
	switch p := s.Payment; p.Status {
	case toss.StatusDone, toss.StatusPartialCanceled:
		return p.InBalance()
	case toss.StatusCanceled: // an administrator may have returned less by hand than the bank has rejected
		return max(0, p.Rejected-p.SettledOutside)
	}
	return s.Reservation.Amount
}

// Owes reports whether the provider holds more of a canceled reservation than the refund policy left with the shop.
func (s Snapshot) Owes(p toss.Payment) bool {
	return s.Reservation.State == booking.Canceled && p.Held() > 0 && !s.keeps(p) && s.Payment.SettledOutside == 0
}

// ByDeposit reports whether the payment is a deposit, or waits for one. The provider returns a deposit to an account of the guest, and
// rejects a refund of any other payment that names one.
func (s Snapshot) ByDeposit() bool {
	return s.Reservation.Method == booking.VirtualAccount || s.Payment.Account.Number != ""
}

// keepsStay reports whether the refund in progress leaves the reservation as it is.
func (s Snapshot) keepsStay() bool { return s.Refund != nil && s.Refund.KeepsStay }

// keptRefund: the provider has answered a refund that keeps the stay.
func (s Snapshot) keptRefund(a Answer) Step {
	switch {
	case s.Refund.State != money.RefundRequested:
		return Stay // another process has ended it
	case a.Declined && s.Refund.Taken:
		return Fail // only the account is declined: the amount remains owed
	case a.Declined:
		return NotReturned
	case s.partReturned(a.Payment):
		return Returned
	}
	return Stay
}

// explained reports whether earlier refunds that kept the stay explain what was returned of a payment that is being canceled, or together
// with them, in a look-up, the refund in progress: its own answer decides.
func (s Snapshot) explained(p toss.Payment, reply bool) bool {
	since := p.TotalAmount - p.BalanceAmount - s.Payment.Returned
	if since == 0 {
		return s.Payment.Returned > 0
	}
	f := s.Refund
	return !reply && f != nil && f.Part && f.State == money.RefundRequested && since == f.Amount
}

// partReturned reports whether the provider's answer to the refund of a part shows a refund. An answer that does not is no
// proof, so the request is repeated.
func (s Snapshot) partReturned(p toss.Payment) bool {
	return s.Refund != nil && s.Refund.Part && p.TotalAmount-p.BalanceAmount >= s.Refund.Amount
}

// rejectedBefore reports whether the refund in progress repeats a transfer that the bank has rejected, and the payment still shows that
// rejection: it does not answer the new request.
func (s Snapshot) rejectedBefore(p toss.Payment) bool {
	f := s.Refund
	return f != nil && f.State == money.RefundRequested && f.Taken && TransferRejected(p)
}

// follow returns Follow while the bank transfers a part, or has rejected its transfer, otherwise the step.
func (s Snapshot) follow(step Step) Step {
	if f := s.Refund; f != nil && (f.KeepsStay || f.Part) && f.AtBank() {
		return Follow
	}
	return step
}

// awaited: a virtual account waits for its deposit.
func (s Snapshot) awaited(p toss.Payment, now time.Time) Step {
	switch s.Reservation.State {
	case booking.Hold, booking.Confirming:
		if p.Currency == toss.Won && s.Chargeable(now) {
			return Wait
		}
		return s.Late()
	case booking.Released, booking.Expired:
		return s.Late()
	case booking.Done:
		return Reverse
	case booking.WaitingForDeposit:
		return WaitOn
	}
	switch f := s.Refund; {
	case f == nil && s.Reservation.State == booking.Canceled && !s.Reservation.PaidAt.IsZero(): // kept, or returned by hand
		return CloseReversed
	case f != nil && f.Unsent() && !f.KeepsStay:
		return CloseReversed
	}
	return Stay
}

// unconfirmed reports that the buyer has authenticated and the charge has not been made.
func unconfirmed(status string) bool {
	return status == toss.StatusReady || status == toss.StatusInProgress
}

// DepositDue is when a deposit is due: at the latest at limit, at the start of the stay if it lies ahead, and at the end
// of the unlock window.
func DepositDue(stay booking.Interval, limit, now time.Time) time.Time {
	due := stay.LastUnlock()
	if stay.Start.After(now) {
		due = stay.Start
	}
	if limit.Before(due) {
		due = limit
	}
	if due.Before(now) {
		return now
	}
	return due
}

// The initiators of cancellations and refunds that no user asked for.
const (
	ByOverdue   = "system:overdue"   // the deposit did not arrive in time
	ByCallback  = "system:callback"  // of earlier releases: a callback reported that the account is canceled
	ByAmount    = "system:amount"    // the provider's payment is not the one we asked for
	ByLate      = "system:late"      // money for a reservation that is over
	ByAbandoned = "system:abandoned" // money for an order that the guest left or replaced
	ByTooLate   = "system:too-late"  // money for a stay that can no longer be used
	ByProvider  = "system:provider"  // of a deposit: canceled at the provider, not by us
	ByStay      = "system:stay"      // of an extension whose stay was changed or has ended
	ByExchange  = "system:exchange"  // of a reservation that the guest has exchanged, or of an unpaid exchange that another one replaces
)

// LateBy is the initiator of the refund of late money.
func (s Snapshot) LateBy(now time.Time) string {
	switch {
	case s.Order.Abandoned():
		return ByAbandoned
	case !s.Useful(now) && s.Reservation.State != booking.Canceled:
		return ByTooLate
	}
	return ByLate
}

// TransferRejected reports whether the guest's bank has returned a refund of a deposit, or a part of one. The provider's list of transactions
// does not show it.
func TransferRejected(p toss.Payment) bool { return AtBank(p.RefundStatus()) == money.RefundFailed }

// AtBank is the state of a refund by the provider's status of the bank transfer.
func AtBank(status string) money.RefundState {
	switch status {
	case "PENDING":
		return money.RefundPending
	case money.TransferFailed, money.PartFailed:
		return money.RefundFailed
	}
	return money.RefundCompleted
}
