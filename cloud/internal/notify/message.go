package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Sender sends messages. [Router], [Solapi] and [Mail] implement it.
type Sender interface {
	// Send passes the message to the provider. Its error is an *[Error] whose class determines whether to retry. A nil
	// error means that the provider accepted the message, not that it was read.
	Send(ctx context.Context, m Message) (Receipt, error)
}

// Finder is a [Sender] whose provider keeps records of accepted messages.
type Finder interface {
	// Find returns the receipt of an accepted message by its ID and recipient. It returns ErrNotTaken if the provider
	// did not accept the message, ErrNoRecords if there are no records, and any other error if the lookup itself
	// failed.
	Find(ctx context.Context, m Message) (Receipt, error)
}

// Errors of a [Finder].
var (
	ErrNotTaken  = errors.New("notify: the provider did not accept the message")
	ErrNoRecords = errors.New("notify: the provider keeps no records")
)

// Message is one message to one recipient. It contains secrets (codes, keys) and must not be logged.
type Message struct {
	// ID identifies the message in the provider's records and in mail clients, which use it to detect duplicates. At
	// most 64 letters, digits, - and _. Optional.
	ID        string
	Template  Template
	Language  Language // "" means Korean
	To        Recipient
	Variables map[string]string
	Brand     Brand // a [Router] sets it
}

// checkID rejects an ID that could break out of its header.
func (m Message) checkID() error {
	if len(m.ID) > 64 || strings.ContainsFunc(m.ID, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) {
		return errors.New("a message's ID has at most 64 letters, digits, - and _")
	}
	return nil
}

// Recipient holds the addresses of a recipient. At least one is required.
type Recipient struct {
	Mobile string // a Korean phone number in any common notation
	Email  string
	URL    string // of a webhook, for the media Discord and Webhook; it is a secret

	Medium Channel // required way of delivery; empty: AlimTalk or SMS to Mobile, otherwise mail
}

// LogValue keeps variables and addresses out of log messages.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID), slog.String("template", string(m.Template)))
}

// Channel is the medium by which a message was sent.
type Channel string

const (
	AlimTalk Channel = "alimtalk"
	SMS      Channel = "sms"
	Email    Channel = "mail"
	Discord  Channel = "discord" // the webhook of a Discord channel
	Webhook  Channel = "webhook" // JSON to any address
)

// Receipt identifies an accepted message at its provider.
type Receipt struct {
	Channel    Channel
	ProviderID string // the provider's message id, for support requests and delivery reports
}

// Class determines how to handle a message that was not accepted.
type Class int

const (
	// Unknown means that the message may have been sent.
	Unknown Class = iota
	// Retryable means that the message was not sent and a retry may succeed.
	Retryable
	// Permanent means that the message was not sent and a retry cannot succeed.
	Permanent
)

// String returns the name used in logs and metrics.
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

// Error is the only error type that a [Sender] of this package returns. Its text contains no recipient and no
// variable.
type Error struct {
	Channel Channel
	Class   Class
	Code    string // the provider's error code, "" if there was none
	Err     error
}

func (e *Error) Error() string {
	channel, code := string(e.Channel), e.Code
	if channel != "" { // a message without a recipient has no channel
		channel += ": "
	}
	if code != "" {
		code = " " + code
	}
	return fmt.Sprintf("notify: %s%s%s: %v", channel, e.Class, code, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of an error; an error that is not an [Error] is [Unknown].
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Unknown
}
