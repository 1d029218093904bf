package booking

import "time"

const (
	// The unlock window runs from UnlockLead before the start to UnlockLead
	// before the real end (decisions.md 8).
	UnlockLead = 2 * time.Minute

	// RefundLead before the start is the last moment a customer may cancel
	// (interface.md, Limits).
	RefundLead = 30 * time.Minute
)

// ReservationID identifies a reservation; the interface calls it payment id.
type ReservationID int64

// A Reservation is a room taken for a time, from the hold to its end.
type Reservation struct {
	ID     ReservationID
	Branch BranchID
	Room   RoomID
	RoomNo int
	State  State
	Source Source
	Interval

	ExpiresAt time.Time // when a hold ends, or when a deposit is due

	OrderID  string // empty until payment data is registered
	Amount   int    // won
	Method   Method
	Name     string
	Mobile   string
	Email    string
	Language string // of messages to the guest: ko or en
	Note     string // an administrator's reason

	DoorlockKey string // empty until confirmed
	CreatedBy   string // administrator's login id or partner's name; empty for customers
	PaidAt      time.Time
	CanceledAt  time.Time
	CreatedAt   time.Time
	Version     int // grows with every change
}

// State is where a reservation stands; the package comment draws the ways.
type State string

// The states. Those from Hold to Canceling are live.
const (
	Hold              State = "HOLD"
	Confirming        State = "CONFIRMING" // the payment provider is being asked
	WaitingForDeposit State = "WAITING_FOR_DEPOSIT"
	Done              State = "DONE"
	Canceling         State = "CANCELING" // the money is on its way back
	Canceled          State = "CANCELED"
	Expired           State = "EXPIRED"  // a hold whose time ran out
	Released          State = "RELEASED" // a hold that was given back
	Conflict          State = "CONFLICT" // a partner's reservation of a taken time
)

// Live reports whether a reservation in this state keeps its room busy.
func (s State) Live() bool {
	switch s {
	case Hold, Confirming, WaitingForDeposit, Done, Canceling:
		return true
	}
	return false
}

// Source is who made a reservation.
type Source string

// The sources.
const (
	Customer Source = "CUSTOMER"
	Admin    Source = "ADMIN"
	Partner  Source = "PARTNER" // an external booking channel
)

// Method is how a reservation was paid, as the interface names it.
type Method string

// The payment methods.
const (
	Card           Method = "카드"
	EasyPay        Method = "간편결제"
	VirtualAccount Method = "가상계좌"
	MobilePhone    Method = "휴대폰"
	ByAdmin        Method = "관리자" // registered without payment (decisions.md 11)
)

// BookingStatus is the state as administrators see it (decisions.md 5, 6).
type BookingStatus string

// The statuses of a live reservation.
const (
	StatusBeforePaymentTab  BookingStatus = "beforePaymentTab"
	StatusPaymentTab        BookingStatus = "paymentTab"
	StatusWaitingForDeposit BookingStatus = "waitingForDeposit"
	StatusPaid              BookingStatus = "paid"
)

// BookingStatus returns the status administrators see; empty when the
// reservation is no longer live. What is being cancelled still counts as what
// it was.
func (r Reservation) BookingStatus() BookingStatus {
	switch r.State {
	case Hold, Confirming:
		if r.Source == Admin || r.OrderID == "" {
			return StatusBeforePaymentTab
		}
		return StatusPaymentTab
	case WaitingForDeposit:
		return StatusWaitingForDeposit
	case Canceling:
		if r.Method == VirtualAccount && r.PaidAt.IsZero() {
			return StatusWaitingForDeposit
		}
		return StatusPaid
	case Done:
		return StatusPaid
	}
	return ""
}

// Occupies reports whether the reservation keeps its room busy at now. A hold
// ends by itself at ExpiresAt, even before anyone has written that down. Nothing
// else does: an overdue account must first be closed at the provider
// (decisions.md 6).
func (r Reservation) Occupies(now time.Time) bool {
	if r.State == Hold {
		return now.Before(r.ExpiresAt)
	}
	return r.State.Live()
}

// UnlockWindow returns the time in which doors open for the guest: from
// included, to not (decisions.md 8).
func (r Reservation) UnlockWindow() (from, to time.Time) {
	return r.Start.Add(-UnlockLead), r.End.Add(-UnlockLead)
}

// CanUnlock returns nil if doors open for the guest at now. It returns
// ErrNotConfirmed unless the reservation is [Done], else ErrOutsideWindow
// outside [Reservation.UnlockWindow].
func (r Reservation) CanUnlock(now time.Time) error {
	if r.State != Done {
		return ErrNotConfirmed
	}
	from, to := r.UnlockWindow()
	if !(Interval{from, to}).Contains(now) {
		return ErrOutsideWindow
	}
	return nil
}

// RefundDeadline is the last moment at which the customer may cancel.
func (r Reservation) RefundDeadline() time.Time { return r.Start.Add(-RefundLead) }

// CanCancel returns ErrTooLateToCancel when the customer's deadline has passed;
// the deadline itself is still in time. It judges the time only: which states
// can be cancelled is for the caller.
func (r Reservation) CanCancel(now time.Time) error {
	if now.After(r.RefundDeadline()) {
		return ErrTooLateToCancel
	}
	return nil
}
