package notify_test

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// newSandbox starts the sandbox and returns a router that uses it.
func newSandbox(t *testing.T) (*sandbox.Sandbox, notify.Router) {
	t.Helper()
	box, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	srv := httptest.NewServer(box)
	t.Cleanup(srv.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- box.ServeSMTP(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	cfg := notify.SolapiConfig{BaseURL: srv.URL, APIKey: sandbox.DemoMessageKey, APISecret: sandbox.DemoMessageSecret,
		From: "0200000000", PfID: "KA01PF-DEMO", Templates: notify.SandboxApproved()}
	phone, err := notify.NewSolapi(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mails, err := notify.NewMail(notify.MailConfig{URL: "smtp://" + l.Addr().String() + "?tls=none", From: "no-reply@yeolda.example", Sandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	return box, notify.Router{Phone: phone, Mail: mails}
}

func values(template notify.Template) map[string]string {
	v := map[string]string{}
	for _, name := range template.Variables() {
		v[name] = "값 " + name
	}
	return v
}

// The sandbox shows every sent message with its channel, template, variables and text.
func TestSandboxTakesEveryTemplate(t *testing.T) {
	t.Parallel()
	box, router := newSandbox(t)
	for i, template := range notify.Templates() {
		language := []notify.Language{notify.Korean, notify.English}[i%2]
		for _, tc := range []struct {
			to      notify.Recipient
			inbox   string
			channel notify.Channel
		}{
			{notify.Recipient{Mobile: "010-1234-5678"}, "01012345678", notify.AlimTalk},
			{notify.Recipient{Mobile: "010-1234-0000"}, "01012340000", notify.AlimTalk}, // without KakaoTalk the provider falls back to SMS
			{notify.Recipient{Email: "hong@example.com"}, "hong@example.com", notify.Email},
		} {
			m := notify.Message{Template: template, Language: language, To: tc.to, Variables: values(template)}
			receipt, err := router.Send(context.Background(), m)
			if err != nil || receipt.Channel != tc.channel || receipt.ProviderID == "" {
				t.Fatalf("%s to %s: %+v, %v", template, tc.inbox, receipt, err)
			}
			inbox := box.Messages(tc.inbox)
			got := inbox[len(inbox)-1]
			if got.Template != string(template) || len(got.Variables) != len(m.Variables) {
				t.Errorf("%s to %s: arrived %+v", template, tc.inbox, got)
			}
			for name, value := range m.Variables {
				if got.Variables[name] != value {
					t.Errorf("%s to %s: %s is %q", template, tc.inbox, name, got.Variables[name])
				}
			}
		}
	}
}

func TestSandboxFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault   sandbox.Fault
		class   notify.Class
		arrived int
	}{
		"rejected at intake": {sandbox.Fault{Kind: sandbox.FaultError, Code: "1062"}, notify.Permanent, 0},
		"unavailable":        {sandbox.Fault{Kind: sandbox.FaultError, Status: 503, Times: 2}, notify.Retryable, 0},
		"internal error":     {sandbox.Fault{Kind: sandbox.FaultError, Times: 2}, notify.Retryable, 0},
		"sent, no answer":    {sandbox.Fault{Kind: sandbox.FaultDropAfterCommit}, notify.Unknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, router := newSandbox(t)
			tc.fault.Target = sandbox.TargetMessages
			if err := box.SetFault(tc.fault); err != nil {
				t.Fatal(err)
			}
			m := notify.Message{Template: notify.LoginCode, To: notify.Recipient{Mobile: "01012345678"}, Variables: values(notify.LoginCode)}
			if _, err := router.Send(context.Background(), m); err == nil || notify.ClassOf(err) != tc.class {
				t.Errorf("%v is %v, want %v", err, notify.ClassOf(err), tc.class)
			}
			if n := len(box.Messages("01012345678")); n != tc.arrived {
				t.Errorf("%d arrived, want %d", n, tc.arrived)
			}
			if receipt, err := router.Send(context.Background(), m); err != nil || receipt.Channel != notify.AlimTalk {
				t.Errorf("afterwards: %+v, %v", receipt, err)
			}
		})
	}
}

func TestSandboxTemplateRefusedGoesAsSMS(t *testing.T) {
	t.Parallel()
	box, router := newSandbox(t)
	if err := box.SetFault(sandbox.Fault{Target: sandbox.TargetMessages, Kind: sandbox.FaultError, Code: "1042"}); err != nil {
		t.Fatal(err)
	}
	m := notify.Message{Template: notify.ReservationConfirmed, To: notify.Recipient{Mobile: "01012345678"}, Variables: values(notify.ReservationConfirmed)}
	receipt, err := router.Send(context.Background(), m)
	if got := box.Messages("01012345678"); err != nil || receipt.Channel != notify.SMS || len(got) != 1 {
		t.Errorf("%+v, %v, arrived %+v", receipt, err, got)
	}
}

// Find returns an accepted message by its ID, and no other message.
func TestFind(t *testing.T) {
	t.Parallel()
	box, router := newSandbox(t)
	message := notify.Message{ID: "yeolda-1", Template: notify.LoginCode, To: notify.Recipient{Mobile: "010-1234-5678"}, Variables: values(notify.LoginCode)}
	if _, err := router.Find(t.Context(), message); !errors.Is(err, notify.ErrNotTaken) {
		t.Errorf("before it was sent: %v", err)
	}
	sent, err := router.Send(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := router.Find(t.Context(), message); err != nil || got != sent {
		t.Errorf("got %+v, want %+v (%v)", got, sent, err)
	}
	another := message
	another.ID = "yeolda-12"
	if _, err := router.Find(t.Context(), another); !errors.Is(err, notify.ErrNotTaken) {
		t.Errorf("another message to the same number: %v", err)
	}
	mail := notify.Message{ID: "yeolda-2", To: notify.Recipient{Email: "a@example.com"}}
	if _, err := router.Find(t.Context(), mail); !errors.Is(err, notify.ErrNoRecords) {
		t.Errorf("mail: %v", err)
	}
	box.Close()
	down := notify.Router{Phone: mustSolapi(t, "http://127.0.0.1:1")}
	if _, err := down.Find(t.Context(), message); err == nil || errors.Is(err, notify.ErrNotTaken) || errors.Is(err, notify.ErrNoRecords) || strings.Contains(err.Error(), "5678") {
		t.Errorf("provider unavailable: %v", err)
	}
}

func mustSolapi(t *testing.T, url string) *notify.Solapi {
	t.Helper()
	phone, err := notify.NewSolapi(notify.SolapiConfig{BaseURL: url, APIKey: sandbox.DemoMessageKey, APISecret: sandbox.DemoMessageSecret, From: "0200000000"})
	if err != nil {
		t.Fatal(err)
	}
	return phone
}
