package notify

import (
	"context"
	"errors"
	"testing"
)

// stub is a sender that fails with err.
type stub struct {
	channel Channel
	err     error
	sent    int
}

func (s *stub) Send(context.Context, Message) (Receipt, error) {
	s.sent++
	if s.err != nil {
		return Receipt{}, s.err
	}
	return Receipt{Channel: s.channel}, nil
}

func TestRouter(t *testing.T) {
	t.Parallel()
	failing := func(c Class) error { return &Error{Channel: AlimTalk, Class: c, Err: errors.New("no")} }
	both := Recipient{Mobile: "01012345678", Email: "a@example.com"}
	hook := Recipient{Email: "a@example.com", Medium: Webhook}
	for name, tc := range map[string]struct {
		to      Recipient
		phone   error
		want    Channel // "" is an error
		class   Class
		inMails int
	}{
		"phone":                        {Recipient{Mobile: "01012345678"}, nil, AlimTalk, 0, 0},
		"mail":                         {Recipient{Email: "a@example.com"}, nil, Email, 0, 1},
		"both prefer the phone":        {both, nil, AlimTalk, 0, 0},
		"undeliverable goes by mail":   {both, failing(Permanent), Email, 0, 1},
		"later is not never":           {both, failing(Retryable), "", Retryable, 0},
		"perhaps is not never":         {both, failing(Unknown), "", Unknown, 0},
		"undeliverable and no address": {Recipient{Mobile: "01012345678"}, failing(Permanent), "", Permanent, 0},
		"required webhook":             {hook, nil, Webhook, 0, 0},
		"nobody":                       {Recipient{}, nil, "", Permanent, 0},
	} {
		phone, mails := &stub{channel: AlimTalk, err: tc.phone}, &stub{channel: Email}
		receipt, err := Router{Phone: phone, Mail: mails, Hooks: &stub{channel: Webhook}}.Send(context.Background(), Message{To: tc.to})
		if receipt.Channel != tc.want || (err == nil) != (tc.want != "") || err != nil && ClassOf(err) != tc.class {
			t.Errorf("%s: %+v, %v", name, receipt, err)
		}
		if mails.sent != tc.inMails {
			t.Errorf("%s: %d mails", name, mails.sent)
		}
	}
}
