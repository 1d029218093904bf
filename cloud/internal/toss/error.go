package toss

import (
	"errors"
	"fmt"
	"strings"
)

// Class says what an error means for the money. It is decided by the provider's
// code, not by the HTTP status: a 400 can be temporary and a 403 is mostly business.
type Class int

const (
	// Unknown means nobody can say whether the call took effect: time-out, reset, 409,
	// 429, 5xx, an answer that cannot be read, a code that is not in the tables.
	// Never treat it as a failure: read the payment, or send the same call with
	// the same idempotency key. It is the zero value on purpose.
	Unknown Class = iota
	// Refused is definitive: a confirmation was declined and nothing was charged, or
	// a cancellation was declined and nothing was paid back. Message is in Korean and
	// meant for the customer. After a refused cancellation read the payment: the
	// provider also refuses when nothing is left to pay back.
	Refused
	// NotFound means that the provider has no such payment, or that its session ended
	// before it was confirmed (10 minutes). Nothing was charged.
	NotFound
	// AlreadyProcessed means that the order was confirmed or issued before, perhaps by
	// our own lost call: read the payment and go by what it says.
	AlreadyProcessed
	// AlreadyCanceled means that the payment was cancelled before: read it.
	AlreadyCanceled
	// RefundAccountInvalid asks for another refund account. Nothing was paid back.
	RefundAccountInvalid
	// RetryLater means that nothing happened and that the same call may succeed later.
	// It needs a new idempotency key: the provider replays the error for the old one.
	RetryLater
	// Misconfigured means our own fault: keys, contract or request. Nothing happened. Alarm.
	Misconfigured
)

var classNames = [...]string{"unknown", "refused", "not found", "already processed", "already canceled",
	"refund account invalid", "retry later", "misconfigured"}

// String returns the name for logs and metrics.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("class %d", int(c))
	}
	return classNames[c]
}

// Error is the only error type the methods of [Client] return.
type Error struct {
	HTTPStatus int    // 0 when no answer arrived or nothing was sent
	Code       string // the provider's code, "" if there was none
	Message    string // the provider's message for people, Korean
	TraceID    string // the provider's trace id, for its support
	Err        error  // why there is no code: transport, decoding or a request that was not sent

	op operation
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "toss: %s", e.op)
	if e.HTTPStatus != 0 {
		fmt.Fprintf(&b, ": HTTP %d", e.HTTPStatus)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " %s", e.Code)
	}
	if e.Message != "" {
		fmt.Fprintf(&b, ": %s", e.Message)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the transport or decoding error, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Class classifies the error by its code and the call that met it.
func (e *Error) Class() Class {
	// A server that failed says nothing reliable about what it did before it failed.
	if e.HTTPStatus >= 500 {
		return Unknown
	}
	if c, ok := codes[e.op][e.Code]; ok {
		return c
	}
	return codes[everyCall][e.Code] // missing: Unknown
}

// ClassOf classifies any error; one that did not come from this package is [Unknown].
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class()
	}
	return Unknown
}

// KeyRejected reports whether the provider rejected our secret key: nothing happened, and nothing will until an operator
// corrects the setting.
func KeyRejected(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.HTTPStatus >= 500 {
		return false
	}
	switch e.Code {
	case "INVALID_API_KEY", "UNAUTHORIZED_KEY", "INCORRECT_BASIC_AUTH_FORMAT":
		return true
	}
	return false
}

// notSent is the error of a request that was found wrong before it was sent.
func notSent(op operation, code string, why error) *Error {
	return &Error{op: op, Code: code, Err: fmt.Errorf("not sent: %w", why)}
}
