package booking

import "time"

const (
	// The unlock window runs from UnlockLead before the start to UnlockLead before the real end (docs/specification.md,
	// Doors 2).
	UnlockLead = 2 * time.Minute

	// RefundLead before the start is the last moment at which a customer may cancel (docs/specification.md, Refunds 1).
	RefundLead = 30 * time.Minute
)

// ReservationID identifies a reservation; the interface calls it payment id.
type ReservationID int64

// A Reservation is a room reserved for an interval, from the hold to its end.
type Reservation struct {
	ID     ReservationID
	Branch BranchID
	Room   RoomID
	RoomNo int
	State  State
	Source Source
	Interval

	Extends  ReservationID // the reservation with the guest's key that this one extends; 0: none
	Replaces ReservationID // the reservation that the confirmation of this one refunds; 0: none
	// StayEnd is the real end of the stay with its confirmed extensions; zero: End. See [Reservation.Stay].
	StayEnd time.Time

	ExpiresAt time.Time // when a hold ends, or when a deposit is due

	LegalEntity string // that is paid, fixed with the order; empty: that of the settings

	HeldPrice int // won, fixed when the time was held; 0: not for sale, or held by an older program

	OrderID  string // empty until payment data is registered
	Amount   int    // won
	Method   Method
	Name     string
	Mobile   string
	Email    string
	Language string // of messages to the guest: ko or en
	Note     string // an administrator's reason

	// SealedKey is the owner's key, sealed. It is empty unless the reservation is Done, and while its keys are blocked.
	SealedKey string
	// DoorlockKey is the owner's key in plain text, if the reservation was just confirmed, or a program of the last release
	// confirmed it. It is empty whenever SealedKey would be.
	DoorlockKey string
	// KeysBlocked means that no key opens doors while the provider is asked whether the money is lost.
	KeysBlocked  bool
	BlockedUntil time.Time

	CreatedBy string // administrator's login id or partner's name; empty for customers
	// QuarantineOf is the reservation whose time this hold keeps from being sold; 0: not a quarantine.
	QuarantineOf ReservationID
	PaidAt       time.Time
	CanceledAt   time.Time
	CreatedAt    time.Time
	Version      int // incremented by every change
}

// HasKey reports whether the owner's key opens doors in the unlock window.
func (r Reservation) HasKey() bool { return r.SealedKey != "" || r.DoorlockKey != "" }

// State is the state of a reservation; the package comment shows the transitions.
type State string

// The states. Those from Hold to Canceling are live.
const (
	Hold              State = "HOLD"
	Confirming        State = "CONFIRMING" // waiting for the payment provider's answer
	WaitingForDeposit State = "WAITING_FOR_DEPOSIT"
	Done              State = "DONE"
	Canceling         State = "CANCELING" // the refund is in progress
	Canceled          State = "CANCELED"
	Expired           State = "EXPIRED"  // the hold ran out
	Released          State = "RELEASED" // the hold was released
	Conflict          State = "CONFLICT" // a partner's reservation of a time that was taken
)

// Live reports whether a reservation in this state occupies its room.
func (s State) Live() bool {
	switch s {
	case Hold, Confirming, WaitingForDeposit, Done, Canceling:
		return true
	}
	return false
}

// Source is the origin of a reservation.
type Source string

// The sources.
const (
	Customer Source = "CUSTOMER"
	Admin    Source = "ADMIN"
	Partner  Source = "PARTNER" // a partner channel
)

// Method is the payment method, as the interface names it.
type Method string

// The payment methods.
const (
	Card           Method = "카드"
	EasyPay        Method = "간편결제"
	VirtualAccount Method = "가상계좌"
	MobilePhone    Method = "휴대폰"
	ByAdmin        Method = "관리자" // registered without payment (docs/specification.md, Administration 1)
)

// BookingStatus is the state as administrators see it.
type BookingStatus string

// The statuses of a live reservation, and of a booking in conflict.
const (
	StatusBeforePaymentTab  BookingStatus = "beforePaymentTab"
	StatusPaymentTab        BookingStatus = "paymentTab"
	StatusWaitingForDeposit BookingStatus = "waitingForDeposit"
	StatusPaid              BookingStatus = "paid"
	StatusConflict          BookingStatus = "conflict" // a partner has sold it although its time was taken
)

// BookingStatus returns the status that administrators see; empty if the reservation is neither live nor in conflict. A reservation that is
// being cancelled keeps its previous status.
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
	case Conflict:
		return StatusConflict
	}
	return ""
}

// Occupies reports whether the reservation occupies its room at now. A hold ends at ExpiresAt, even before that is
// recorded. An overdue virtual account does not end by itself: it must be closed at the provider first
// (docs/specification.md, Payment 17).
func (r Reservation) Occupies(now time.Time) bool {
	if r.State == Hold {
		return now.Before(r.ExpiresAt)
	}
	return r.State.Live()
}

// Stay returns the time for which the guest has the room: the reservation with its confirmed extensions.
func (r Reservation) Stay() Interval {
	if r.StayEnd.IsZero() {
		return r.Interval
	}
	return Interval{r.Start, r.StayEnd}
}

// UnlockWindow returns the time during which doors open for the guest: from inclusive, to exclusive (docs/specification.md,
// Doors 2).
func (r Reservation) UnlockWindow() (from, to time.Time) {
	return r.Start.Add(-UnlockLead), r.Stay().LastUnlock()
}

// CanUnlock returns nil if doors open for the guest at now, ErrNotConfirmed if the reservation is not [Done], and
// ErrOutsideWindow outside [Reservation.UnlockWindow].
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

// RefundDeadline returns the last moment at which the customer may cancel.
func (r Reservation) RefundDeadline() time.Time { return r.Start.Add(-RefundLead) }

// CanCancel returns ErrTooLateToCancel after the customer's deadline; the deadline itself is still in time. It checks the
// time only: the caller checks the state.
func (r Reservation) CanCancel(now time.Time) error {
	if now.After(r.RefundDeadline()) {
		return ErrTooLateToCancel
	}
	return nil
}
