package notify

import (
	"context"
	"errors"
)

// Router chooses the channel: a webhook if the message requires one, the phone if there is a number, otherwise mail. A
// message that can never reach the phone is sent by mail if an address is known.
type Router struct {
	Phone Sender
	Mail  Sender
	Hooks Sender // of messages for webhooks

	Brand func(context.Context) Brand // nil: the shipped one
}

var errNoRecipient = errors.New("neither a phone number nor an e-mail address")

// Find implements [Finder]. Only the phone provider keeps records.
func (r Router) Find(ctx context.Context, m Message) (Receipt, error) {
	if finder, ok := r.Phone.(Finder); ok && m.To.Mobile != "" {
		return finder.Find(ctx, m)
	}
	return Receipt{}, ErrNoRecords
}

// Send implements [Sender].
func (r Router) Send(ctx context.Context, m Message) (Receipt, error) {
	if r.Brand != nil {
		m.Brand = r.Brand(ctx)
	}
	switch {
	case m.To.Medium == Discord || m.To.Medium == Webhook:
		return r.Hooks.Send(ctx, m)
	case m.To.Mobile != "":
		receipt, err := r.Phone.Send(ctx, m)
		if err != nil && m.To.Email != "" && ClassOf(err) == Permanent {
			return r.Mail.Send(ctx, m)
		}
		return receipt, err
	case m.To.Email != "":
		return r.Mail.Send(ctx, m)
	}
	return Receipt{}, &Error{Class: Permanent, Err: errNoRecipient}
}
