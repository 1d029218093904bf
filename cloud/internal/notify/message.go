package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Sender sends messages. It is the port of this package; [Router], [Solapi] and
// [Mail] implement it.
type Sender interface {
	// Send hands the message to the outside system. An error is an *[Error] whose class
	// says whether to send again. A nil error means accepted, not read.
	Send(ctx context.Context, m Message) (Receipt, error)
}

// Finder is a [Sender] whose outside system keeps records of what it has taken.
type Finder interface {
	// Find returns the receipt of a message that was taken, by its ID and recipient. ErrNotTaken says that it was not;
	// ErrNoRecords, that nobody can tell; any other error, that nobody can tell now.
	Find(ctx context.Context, m Message) (Receipt, error)
}

// Errors of a [Finder].
var (
	ErrNotTaken  = errors.New("notify: the message was not taken")
	ErrNoRecords = errors.New("notify: there are no records of messages")
)

// Message is one message to one person. It holds secrets (codes, keys): do not log it.
type Message struct {
	// ID names the message for the provider's records and mail clients, which then
	// recognise a repetition. At most 64 of letters, digits, - and _. Optional.
	ID        string
	Template  Template
	Language  Language // "" is Korean
	To        Recipient
	Variables map[string]string
}

// checkID keeps an ID from becoming more than one header's value.
func (m Message) checkID() error {
	if len(m.ID) > 64 || strings.ContainsFunc(m.ID, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) {
		return errors.New("a message's ID has at most 64 letters, digits, - and _")
	}
	return nil
}

// Recipient is where a message goes. One of the two is enough.
type Recipient struct {
	Mobile string // a Korean number in any usual spelling
	Email  string
}

// LogValue keeps variables and addresses out of logs.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID), slog.String("template", string(m.Template)))
}

// Channel is how a message went out.
type Channel string

const (
	AlimTalk Channel = "alimtalk"
	SMS      Channel = "sms"
	Email    Channel = "mail"
)

// Receipt says who took a message.
type Receipt struct {
	Channel    Channel
	ProviderID string // the provider's id of the message, for its support and its reports
}

// Class says what to do about a message that was not accepted.
type Class int

const (
	// Unknown means that the message may have gone out.
	Unknown Class = iota
	// Retryable means that it did not go out and may do so later.
	Retryable
	// Permanent means that it did not go out and never will as it is.
	Permanent
)

// String returns the name for logs and metrics.
func (c Class) String() string {
	switch c {
	case Unknown:
		return "unknown"
	case Retryable:
		return "retryable"
	case Permanent:
		return "permanent"
	}
	return fmt.Sprintf("class %d", int(c))
}

// Error is the only error type a [Sender] of this package returns. Its text names no
// recipient and no variable's value.
type Error struct {
	Channel Channel
	Class   Class
	Code    string // the provider's code, "" if there was none
	Err     error
}

func (e *Error) Error() string {
	code := e.Code
	if code != "" {
		code = " " + code
	}
	return fmt.Sprintf("notify: %s: %s%s: %v", e.Channel, e.Class, code, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf classifies any error; one that did not come from this package is [Unknown].
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Unknown
}
