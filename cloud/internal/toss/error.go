package toss

import (
	"errors"
	"fmt"
	"strings"
)

// Class classifies an error by its effect on the money. The provider's code determines it,
// not the HTTP status: a 400 can be temporary, and most 403s are refusals.
type Class int

const (
	// Unknown means that the call may or may not have taken effect: timeout, reset, 409,
	// 429, 5xx, an unreadable response, a code that is not in the tables. The caller
	// must not treat it as a failure, but read the payment, or repeat the call with the
	// same idempotency key. It is the zero value so that an unlisted code is Unknown.
	Unknown Class = iota
	// Refused is final: a confirmation was declined and nothing was charged, or a
	// cancellation was declined and nothing was refunded. Message is in Korean, for the
	// customer. After a refused cancellation the caller must read the payment, because
	// the provider also refuses if the balance is zero.
	Refused
	// NotFound means that the provider has no such payment, or that its session ended
	// before it was confirmed (10 minutes). Nothing was charged.
	NotFound
	// AlreadyProcessed means that the order was confirmed or issued before, possibly by
	// a call whose response was lost. The caller must read the payment.
	AlreadyProcessed
	// AlreadyCanceled means that the payment was cancelled before. The caller must read it.
	AlreadyCanceled
	// RefundAccountInvalid means that another refund account is required. Nothing was refunded.
	RefundAccountInvalid
	// RetryLater means that nothing happened and that the same call may succeed later,
	// with a new idempotency key: the provider replays the error for the old one.
	RetryLater
	// Misconfigured means that our keys, contract or request are wrong. Nothing happened.
	// The caller must alert the operator.
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

// Error is the only error type that the methods of [Client] return.
type Error struct {
	HTTPStatus int    // 0 if no response arrived or nothing was sent
	Code       string // the provider's code, "" if there was none
	Message    string // the provider's message for the customer, in Korean
	TraceID    string // the provider's trace id, for its support
	Err        error  // the transport or decoding error, or why the request was not sent

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

// Class classifies the error by its code and the call that returned it.
func (e *Error) Class() Class {
	// A server error does not show whether the call took effect.
	if e.HTTPStatus >= 500 {
		return Unknown
	}
	if c, ok := codes[e.op][e.Code]; ok {
		return c
	}
	return codes[everyCall][e.Code] // missing: Unknown
}

// ClassOf classifies any error. An error of another package is [Unknown].
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class()
	}
	return Unknown
}

// KeyRejected reports whether the provider rejected our secret key. Nothing happened, and no call can succeed until an
// operator corrects the setting.
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

// notSent returns the error of a request that is invalid and was not sent.
func notSent(op operation, code string, why error) *Error {
	return &Error{op: op, Code: code, Err: fmt.Errorf("not sent: %w", why)}
}
