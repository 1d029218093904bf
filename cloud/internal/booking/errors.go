package booking

import "errors"

// Errors of lookups.
var (
	ErrNoBranch      = errors.New("booking: no such branch")
	ErrNoReservation = errors.New("booking: no such reservation")
)

// What is wrong with an asked interval.
var (
	ErrOffGrid        = errors.New("booking: time is not on a ten-minute mark")
	ErrEndBeforeStart = errors.New("booking: end is not after start")
	ErrTooLong        = errors.New("booking: longer than five hours")
	ErrPast           = errors.New("booking: start lies before the running slot")
	ErrBeyondHorizon  = errors.New("booking: start lies beyond the booking horizon")
)

// Why a branch does not take a reservation at an asked time.
var (
	// ErrClosed is what every [ClosedError] is.
	ErrClosed     = errors.New("booking: branch is closed that day")
	ErrBreak      = errors.New("booking: branch has a break at that time")
	ErrAfterHours = errors.New("booking: outside the opening hours")
)

// Why a reservation does not allow what is asked of it.
var (
	ErrNotConfirmed    = errors.New("booking: reservation is not confirmed")
	ErrOutsideWindow   = errors.New("booking: outside the unlock window")
	ErrTooLateToCancel = errors.New("booking: the cancellation deadline has passed")
)

// What is wrong with input that names a thing.
var (
	ErrMalformedSlot = errors.New("booking: not a slot")
	ErrMalformedDate = errors.New("booking: not a date")
	ErrInvalid       = errors.New("booking: invalid setting") // what every [InvalidError] is
)

// A ClosedError says on which day the branch is closed, and why. It is an
// [ErrClosed].
type ClosedError struct {
	Date Date
	DayStatus
}

func (e *ClosedError) Error() string {
	msg := ErrClosed.Error() + ": " + e.Date.String() + " " + string(e.Status)
	if e.Reason != "" {
		msg += ", " + e.Reason
	}
	return msg
}

func (e *ClosedError) Unwrap() error { return ErrClosed }
