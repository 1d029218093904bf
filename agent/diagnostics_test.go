package agent_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// received is what an agent has sent of its diagnostics.
type received struct {
	b       *branch
	t       *testing.T
	status  protocol.DiagnosticsStatus
	lines   []string
	last    string // lines of the last message
	reports []protocol.DiagnosticsReport
}

// until reads messages until ok.
func (r *received) until(ok func() bool) {
	r.t.Helper()
	for !ok() {
		next := r.b.broker.Next(protocol.KindStatus, protocol.KindDiagnosticsLog, protocol.KindDiagnosticsReport)
		var err error
		switch next.Kind {
		case protocol.KindStatus:
			var m protocol.Status
			if m, err = protocol.Decode[protocol.Status](next.Payload); err == nil {
				r.status = *m.Diagnostics
			}
		case protocol.KindDiagnosticsLog:
			var m protocol.DiagnosticsLog
			m, err = protocol.Decode[protocol.DiagnosticsLog](next.Payload)
			r.last = ""
			for _, l := range m.Lines {
				r.lines, r.last = append(r.lines, l.Text), r.last+l.Text+"\n"
			}
		case protocol.KindDiagnosticsReport:
			var m protocol.DiagnosticsReport
			m, err = protocol.Decode[protocol.DiagnosticsReport](next.Payload)
			r.reports = append(r.reports, m)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// untilLine waits for a line that contains a text.
func (r *received) untilLine(part string) {
	r.t.Helper()
	r.until(func() bool { return strings.Contains(r.log(), part) })
}

func (r *received) log() string { return strings.Join(r.lines, "\n") }

// diagnose sends a valid request, waits for the status that names it, and returns the request.
func (r *received) diagnose(seconds uint32, doctor bool) protocol.Diagnostics {
	r.t.Helper()
	m := protocol.Diagnostics{Nonce: r.status.Nonce, Request: protocol.NewNonce(), Seconds: seconds, Doctor: doctor}.Sign(brokertest.Key, self)
	r.b.broker.SendTo(self, m)
	r.until(func() bool { return r.status.Request == m.Request })
	return m
}

// TestDiagnosticsOverTheBroker opens windows over a real broker: the log arrives, with what happened before, and the report of the
// doctor. A recorded request opens no window.
func TestDiagnosticsOverTheBroker(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	ended := make(chan struct{}, 10)
	b.config.Logger = slog.New(watcher{slog.DiscardHandler, "diagnostics: the window has ended", ended})
	b.config.Doctor = func(context.Context) string { return "ok    gpio\nFAIL  broker\n" }
	r := received{b: b, t: t, status: *b.online(t).Diagnostics}
	first := r.diagnose(600, true)
	r.untilLine("connected to the broker")
	r.until(func() bool { return len(r.reports) > 0 })
	if got := r.reports[0]; got.Request != first.Request || got.Text != "ok    gpio\nFAIL  broker\n" {
		t.Errorf("got %+v, want the report", got)
	}
	b.broker.Send("gangnam", grant(b.claim(b.newRequest(), "room_1"), time.Second, "room_1"))
	r.untilLine("outcome=opened")

	second := r.diagnose(1, false)
	<-ended
	b.broker.SendTo(self, second)
	b.broker.SendTo(self, first)
	r.diagnose(600, false)                                                              // after them
	r.until(func() bool { return strings.Contains(r.last, "connected to the broker") }) // the new window begins with the newest lines
	if n := strings.Count(r.last, "the log is sent to the service"); n != 3 {
		t.Errorf("the agent accepted %d requests, want 3: recorded ones open no window\n%s", n, r.last)
	}
	if n := strings.Count(r.last, "the window has ended"); n != 1 {
		t.Errorf("%d windows have ended, want 1\n%s", n, r.last)
	}
}

// watcher is a handler that reports a message.
type watcher struct {
	slog.Handler
	message string
	seen    chan<- struct{}
}

func (watcher) Enabled(context.Context, slog.Level) bool { return true }

func (w watcher) Handle(_ context.Context, r slog.Record) error {
	if r.Message == w.message {
		w.seen <- struct{}{}
	}
	return nil
}

func (w watcher) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w watcher) WithGroup(string) slog.Handler      { return w }

// TestNoSecretInTheLog has the agent use each of its secrets, with errors, and reads the log that a window sends.
func TestNoSecretInTheLog(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{5}, ed25519.SeedSize))
	b.broker.SetKey(self.Username, key.Public().(ed25519.PublicKey))
	b.config.Key = key
	b.config.SecretFile = filepath.Join(t.TempDir(), "missing", "secrets.json") // it cannot be stored
	b.config.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	status := b.online(t)
	b.broker.SendTo(self, protocol.Rekey{Rotation: protocol.NewNonce()})
	b.broker.SendTo(self, protocol.KeyList{Epoch: 1, Keys: []string{base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))}}.Sign(key))
	claim := b.claim(b.newRequest(), "room_1")
	g := grant(claim, time.Second, "room_1")
	b.broker.Send("gangnam", g)
	brokertest.Await[protocol.Result](b.broker)
	r := received{b: b, t: t, status: *status.Diagnostics}
	r.diagnose(600, false)
	r.untilLine("replacing the secrets fails")
	r.untilLine("outcome=opened")
	for name, secret := range map[string]string{
		"password": brokertest.Password, "key": base64.StdEncoding.EncodeToString(key.Seed()), "private key": base64.StdEncoding.EncodeToString(key),
		"nonce": claim.Nonce, "signature": g.Signature,
	} {
		if strings.Contains(r.log(), secret) {
			t.Errorf("the log has the %s:\n%s", name, r.log())
		}
	}
}
