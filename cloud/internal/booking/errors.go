package booking

import "errors"

// Errors of lookups.
var (
	ErrNoBranch = errors.New("booking: no such branch")
	// ErrSellerChanged is returned for an order of a legal entity that no longer sells at the branch.
	ErrSellerChanged = errors.New("booking: another legal entity sells at the branch")
	ErrNoReservation = errors.New("booking: no such reservation")
)

// Errors of a requested interval.
var (
	ErrOffGrid        = errors.New("booking: time is not on a ten-minute mark")
	ErrNoLocalTime    = errors.New("booking: the local clock skips that time")
	ErrEndBeforeStart = errors.New("booking: end is not after start")
	ErrTooLong        = errors.New("booking: longer than five hours")
	ErrPast           = errors.New("booking: start is before the current slot")
	ErrBeyondHorizon  = errors.New("booking: start is beyond the booking horizon")
)

// Errors of a branch that takes no reservation at the requested time.
var (
	// ErrClosed is matched by every [ClosedError].
	ErrClosed     = errors.New("booking: branch is closed on that day")
	ErrBreak      = errors.New("booking: branch has a break at that time")
	ErrAfterHours = errors.New("booking: outside the opening hours")
)

// Errors of a reservation that does not allow an operation.
var (
	ErrNotConfirmed    = errors.New("booking: reservation is not confirmed")
	ErrOutsideWindow   = errors.New("booking: outside the unlock window")
	ErrTooLateToCancel = errors.New("booking: the cancellation deadline has passed")
)

// Errors of malformed input.
var (
	ErrMalformedDate = errors.New("booking: malformed date")
	ErrInvalid       = errors.New("booking: invalid setting") // matched by every [InvalidError]
)

// A ClosedError is returned for a day on which the branch is closed, with the reason. It matches [ErrClosed].
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
