package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/agent/internal/logtail"
	"github.com/yeolda/yeolda/protocol"
)

var diagnosticsKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))

// diagnosed is diagnostics in simulated time, whose messages are recorded.
type diagnosed struct {
	*diagnostics
	t    *testing.T
	busy atomic.Bool // the link takes no lines

	mu   sync.Mutex
	logs []protocol.DiagnosticsLog
	sent []protocol.DiagnosticsReport
}

// startDiagnostics runs diagnostics until the end of the test's bubble.
func startDiagnostics(t *testing.T) *diagnosed {
	t.Helper()
	tail := new(logtail.Tail)
	d := &diagnosed{t: t}
	d.diagnostics = &diagnostics{
		me: protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}, tail: tail, log: slog.New(tail.Handler(slog.DiscardHandler)),
		doctor: func(context.Context) string { return "ok\x00\n" }, refresh: func() {},
		offer: func(m protocol.Message, _ time.Duration) bool {
			if d.busy.Load() {
				return false
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.logs = append(d.logs, d.encoded(m).(protocol.DiagnosticsLog))
			return true
		},
		send: func(m protocol.Message, _ time.Duration) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.sent = append(d.sent, d.encoded(m).(protocol.DiagnosticsReport))
		},
		wake: make(chan struct{}, 1), due: make(chan examination, 1), status: protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return d
}

// encoded fails the test if a message is not valid.
func (d *diagnosed) encoded(m protocol.Message) protocol.Message {
	if _, err := protocol.Encode(m); err != nil {
		d.t.Error(err)
	}
	return m
}

// ask sends a valid request.
func (d *diagnosed) ask(seconds uint32, doctor bool) protocol.Diagnostics {
	m := protocol.Diagnostics{Nonce: d.current().Nonce, Request: protocol.NewNonce(), Seconds: seconds, Doctor: doctor}.Sign(diagnosticsKey, d.me)
	d.receive(m)
	return m
}

func (d *diagnosed) receive(m protocol.Diagnostics) {
	d.diagnostics.receive(m, []ed25519.PublicKey{diagnosticsKey.Public().(ed25519.PublicKey)})
}

// take returns the messages with lines sent so far, and forgets them.
func (d *diagnosed) take() (logs []protocol.DiagnosticsLog) {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	logs, d.logs = d.logs, nil
	return logs
}

// reports returns the reports sent so far.
func (d *diagnosed) reports() []protocol.DiagnosticsReport {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.sent)
}

// lines returns the lines sent so far, without those about diagnostics, and forgets them.
func (d *diagnosed) lines() string {
	var texts []string
	for _, m := range d.take() {
		if m.Dropped > 0 {
			texts = append(texts, fmt.Sprintf("(%d dropped)", m.Dropped))
		}
		for _, l := range m.Lines {
			if !strings.HasPrefix(l.Text, "diagnostics") {
				texts = append(texts, l.Text)
			}
		}
	}
	return strings.Join(texts, " ")
}

func (d *diagnosed) want(want string) {
	d.t.Helper()
	if got := d.lines(); got != want {
		d.t.Errorf("got lines %q, want %q", got, want)
	}
}

func TestWindowOfDiagnostics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := startDiagnostics(t)
		d.log.Info("one")
		d.log.Info("two")
		time.Sleep(time.Hour)
		d.want("")
		d.ask(600, false)
		d.want("one two")
		d.log.Info("three")
		d.want("") // not yet
		time.Sleep(logInterval)
		d.want("three")
		time.Sleep(598 * time.Second)
		d.want("")
		d.log.Info("four")
		time.Sleep(logInterval)
		d.want("") // the window ended at this moment
		d.log.Info("five")
		time.Sleep(time.Hour)
		d.want("")

		// A new window begins with the newest lines again, and can be extended.
		d.ask(2, false)
		d.want("one two three four five")
		time.Sleep(logInterval)
		d.ask(600, false)
		d.log.Info("six")
		time.Sleep(10 * time.Second)
		d.want("six")
		if got := d.reports(); len(got) != 0 {
			t.Errorf("got reports %+v that were not asked for", got)
		}
	})
}

// TestRequestsThatOpenNoWindow sends requests for other agents, of other keys, and recorded ones.
func TestRequestsThatOpenNoWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := startDiagnostics(t)
		valid := protocol.Diagnostics{Nonce: d.current().Nonce, Request: protocol.NewNonce(), Seconds: 600}
		other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
		foreign := valid
		foreign.Nonce = protocol.NewNonce()
		for name, m := range map[string]protocol.Diagnostics{
			"another key":    valid.Sign(other, d.me),
			"another branch": valid.Sign(diagnosticsKey, protocol.Agent{Branch: "hongdae", Username: d.me.Username}),
			"another agent":  valid.Sign(diagnosticsKey, protocol.Agent{Branch: d.me.Branch, Username: "agent-gangnam-2"}),
			"another nonce":  foreign.Sign(diagnosticsKey, d.me),
			"no signature":   valid,
		} {
			before := d.current()
			d.receive(m)
			if len(d.take()) > 0 || d.current() != before {
				t.Errorf("%s: a window is open", name)
			}
		}
		recorded := d.ask(1, true)
		if d.current().Request != recorded.Request || d.current().Nonce == recorded.Nonce {
			t.Errorf("got status %+v, want the request and a new nonce", d.current())
		}
		time.Sleep(time.Minute)
		d.take()
		d.receive(recorded)
		time.Sleep(time.Minute)
		if len(d.take()) > 0 || len(d.reports()) != 1 {
			t.Error("a recorded request has an effect")
		}
	})
}

// TestFloodOfLines writes more than may be sent: the newest lines arrive, and the others are counted.
func TestFloodOfLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := startDiagnostics(t)
		d.ask(600, false)
		d.take()
		const each = 1000
		long := strings.Repeat("<", 2*protocol.MaxLogLine)
		for second := range 10 {
			for n := range each {
				if second%2 == 0 {
					d.log.Info("flood", "n", n)
				} else {
					d.log.Info(long)
				}
			}
			time.Sleep(logInterval)
			synctest.Wait()
		}
		logs := d.take()
		if len(logs) != 10 {
			t.Fatalf("got %d messages in ten seconds, want one a second", len(logs))
		}
		total := 0
		for i, m := range logs {
			payload, err := protocol.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			if len(payload) > logSize+200 || len(m.Lines) == 0 || len(m.Lines) > protocol.MaxLogLines {
				t.Errorf("message %d has %d bytes and %d lines", i, len(payload), len(m.Lines))
			}
			total += len(m.Lines) + int(m.Dropped)
		}
		if total != 10*each {
			t.Errorf("%d lines were sent or counted, want %d", total, 10*each)
		}
		if last := logs[8].Lines; last[len(last)-1].Text != "flood n=999" {
			t.Errorf("got %q as the last line, want the newest", last[len(last)-1].Text)
		}
	})
}

// TestLinesWaitForTheConnection: a busy link takes no lines. They are sent later, and the newest first.
func TestLinesWaitForTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := startDiagnostics(t)
		d.log.Info("before")
		d.busy.Store(true)
		d.ask(600, false)
		d.log.Info("while busy")
		time.Sleep(5 * time.Second)
		d.want("")
		d.busy.Store(false)
		time.Sleep(logInterval)
		d.want("before while busy")
		d.busy.Store(true)
		for n := range protocol.MaxLogLines + 10 {
			d.log.Info(fmt.Sprint(n))
		}
		time.Sleep(5 * time.Second)
		d.busy.Store(false)
		time.Sleep(logInterval)
		if logs := d.take(); len(logs) != 1 || logs[0].Dropped != 10 || len(logs[0].Lines) != protocol.MaxLogLines {
			t.Errorf("got %+v, want the newest %d lines and 10 dropped", logs, protocol.MaxLogLines)
		}
	})
}

func TestDoctorInAWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := startDiagnostics(t)
		d.ask(600, false)
		time.Sleep(time.Minute)
		examined := make(chan struct{})
		d.doctor = func(ctx context.Context) string {
			<-examined
			return "report\x1b"
		}
		first := d.ask(600, true)
		synctest.Wait()
		d.ask(600, true) // superseded by the next one while the first is in progress
		last := d.ask(600, true)
		d.log.Info("meanwhile")
		time.Sleep(logInterval)
		d.want("meanwhile") // a slow doctor does not delay the log
		close(examined)
		if got := d.reports(); len(got) != 2 || got[0].Request != first.Request || got[1].Request != last.Request || got[0].Text != "report " {
			t.Errorf("got reports %+v, want one for the first and one for the last request", got)
		}
	})
}

// TestCloseWindow closes a window: no line and no report is sent from that moment on, also of an examination in progress.
func TestCloseWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := startDiagnostics(t)
		examined := make(chan struct{})
		d.doctor = func(context.Context) string { <-examined; return "report" }
		d.ask(600, true)
		d.log.Info("one")
		time.Sleep(logInterval)
		d.want("one")
		d.log.Info("two")
		closing := d.ask(0, false)
		close(examined)
		d.log.Info("three")
		time.Sleep(time.Hour)
		d.want("")
		if got := d.reports(); len(got) != 0 || d.current().Request != closing.Request {
			t.Errorf("got reports %+v and status %+v, want none, and the request that closed the window", got, d.current())
		}

		d.ask(600, true) // the next one is not affected
		time.Sleep(logInterval)
		d.want("one two three")
		if got := d.reports(); len(got) != 1 {
			t.Errorf("got %d reports, want 1", len(got))
		}
		d.ask(0, false)
		d.ask(600, false) // before the log noticed that it was closed
		d.log.Info("four")
		time.Sleep(logInterval)
		d.want("one two three four")
	})
}

func TestListTests(t *testing.T) {
	t.Parallel()
	got := listTests([]protocol.SelfTest{{Name: "relay front_1", OK: true}, {Name: "relay room_1", Detail: "was energised at start"}})
	if want := "ok    relay front_1\nFAIL  relay room_1 was energised at start\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
