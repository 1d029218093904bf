package device_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// diagnosticsFixture is a fixture whose requests of diagnostics are recorded.
type diagnosticsFixture struct {
	*fixture
	sent []protocol.Diagnostics // to the agent of gangnam
}

var gangnamAgent = agent("gangnam").Username

func newDiagnosticsFixture(t *testing.T) *diagnosticsFixture {
	t.Helper()
	f := &diagnosticsFixture{fixture: newFixture(t)}
	f.db.Now = func() time.Time { return f.now }
	f.SigningKey = func(context.Context, uint64) (ed25519.PrivateKey, error) { return grantKey, nil }
	f.Send = func(to protocol.Peer, m protocol.Message) error {
		d := m.(protocol.Diagnostics)
		if err := errors.Join(d.Verify(to.Agent, grantKey.Public().(ed25519.PublicKey)), d.Validate()); err != nil || to.Agent != agent("gangnam") {
			t.Errorf("request for %v: %v", to.Agent, err)
		}
		f.sent = append(f.sent, d)
		return nil
	}
	return f
}

// report has the agent of gangnam report its status.
func (f *diagnosticsFixture) report(status *protocol.DiagnosticsStatus) {
	f.t.Helper()
	f.sendStatus(agent("gangnam"), protocol.Status{Diagnostics: status})
}

// step returns the requests that are sent.
func (f *diagnosticsFixture) step() []protocol.Diagnostics {
	f.t.Helper()
	f.sent = nil
	if err := f.StepDiagnostics(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return f.sent
}

// open opens a window and returns the requests that are sent.
func (f *diagnosticsFixture) open(doctor bool) []protocol.Diagnostics {
	f.t.Helper()
	f.sent = nil
	if err := f.OpenDiagnostics(f.t.Context(), gangnamAgent, doctor, "admin:hq"); err != nil {
		f.t.Fatal(err)
	}
	return f.sent
}

func (f *diagnosticsFixture) show(after int64) device.Diagnostics {
	f.t.Helper()
	found, err := f.ShowDiagnostics(f.t.Context(), gangnamAgent, after)
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

// log has an agent send a line.
func (f *diagnosticsFixture) log(from protocol.Agent, text string) {
	f.t.Helper()
	m := protocol.DiagnosticsLog{Dropped: 2, Lines: []protocol.LogLine{{At: f.now, Level: "INFO", Text: text}}}
	if err := f.DiagnosticsLog(f.t.Context(), from, m); err != nil {
		f.t.Fatal(err)
	}
}

func (f *diagnosticsFixture) want(lines ...string) {
	f.t.Helper()
	var got []string
	for _, part := range f.show(0).Log {
		for _, l := range part.Lines {
			got = append(got, l.Text)
		}
	}
	if !slices.Equal(got, lines) {
		f.t.Errorf("got lines %q, want %q", got, lines)
	}
}

// TestRequestIsSentUntilTheStatusNamesIt follows a request to an agent that restarts in its window, and to the end of the window.
func TestRequestIsSentUntilTheStatusNamesIt(t *testing.T) {
	t.Parallel()
	f := newDiagnosticsFixture(t)
	first, second, third := protocol.NewNonce(), protocol.NewNonce(), protocol.NewNonce()
	if sent := f.open(true); sent != nil {
		t.Errorf("%+v was sent to an agent that was never connected", sent)
	}
	f.report(&protocol.DiagnosticsStatus{Nonce: first})
	for range 2 {
		if sent := f.step(); len(sent) != 1 || sent[0].Nonce != first || sent[0].Seconds != 600 || !sent[0].Doctor {
			t.Fatalf("got %+v, want the request for ten minutes", sent)
		}
	}
	request := f.sent[0].Request
	f.report(&protocol.DiagnosticsStatus{Nonce: second, Request: request})
	if sent := f.step(); sent != nil {
		t.Errorf("%+v was sent after the agent received it", sent)
	}
	if d := f.show(0); !d.Open || !d.Received() || !d.Supported() || d.Window.OpenedBy != "admin:hq" {
		t.Errorf("got %+v, want an open window", d)
	}
	if err := f.DiagnosticsReport(t.Context(), agent("gangnam"), protocol.DiagnosticsReport{Request: request, Text: "ok"}); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(9 * time.Minute)
	f.report(&protocol.DiagnosticsStatus{Nonce: third}) // it has restarted
	if sent := f.step(); len(sent) != 1 || sent[0].Nonce != third || sent[0].Seconds != 60 || sent[0].Doctor || sent[0].Request != request {
		t.Errorf("got %+v, want the rest of the window without a second report", sent)
	}
	if sent := f.open(false); len(sent) != 1 || sent[0].Seconds != 600 || sent[0].Request == request {
		t.Errorf("got %+v, want another request for ten minutes at once", sent)
	}
	if d := f.show(0); d.Received() || !d.Window.OpenedAt.Equal(f.now.Add(-9*time.Minute)) || d.Window.Report != "ok" {
		t.Errorf("got %+v, want the same window with its report", d)
	}
	f.now = f.now.Add(10 * time.Minute)
	if sent := f.step(); sent != nil {
		t.Errorf("%+v was sent after the window", sent)
	}
	if d := f.show(0); d.Open {
		t.Error("the window is open after its end")
	}
	audited := rows[string](f.fixture, `select actor || ' ' || target || ' ' || (detail ->> 'doctor') from audit where action = 'agent.diagnostics' order by id`)
	if want := []string{"admin:hq agent-gangnam true", "admin:hq agent-gangnam false"}; !slices.Equal(audited, want) {
		t.Errorf("got audit entries %q, want %q", audited, want)
	}
}

// TestLogIsStoredInItsWindow sends lines before, in, and after a window, and from other agents.
func TestLogIsStoredInItsWindow(t *testing.T) {
	t.Parallel()
	f := newDiagnosticsFixture(t)
	f.report(&protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()})
	f.log(agent("gangnam"), "before")
	request := f.open(false)[0].Request
	f.log(agent("gangnam"), "one")
	f.log(agent("hongdae"), "of another agent")
	f.now = f.now.Add(10 * time.Minute)
	f.log(agent("gangnam"), "two") // its window began later
	f.now = f.now.Add(time.Minute)
	f.log(agent("gangnam"), "after")
	f.want("one", "two")
	parts := f.show(0).Log
	if next := f.show(parts[0].ID).Log; len(next) != 1 || next[0].Lines[0].Text != "two" || next[0].Dropped != 2 {
		t.Errorf("got %+v after the first part, want the second one", next)
	}
	if err := f.DiagnosticsReport(t.Context(), agent("gangnam"), protocol.DiagnosticsReport{Request: request, Text: "not asked for"}); err != nil {
		t.Fatal(err)
	}
	if d := f.show(0); d.Window.Report != "" || !d.Window.ReportAt.IsZero() {
		t.Errorf("got %+v, want no report", d.Window)
	}
	f.open(false)
	f.want() // a new window begins with an empty log
	f.log(agent("gangnam"), "three")
	f.open(false)
	f.want("three") // an extended one does not

	f.now = f.now.Add(2 * time.Hour)
	f.want()
	if d := f.show(0); d.Window != nil {
		t.Errorf("got window %+v two hours later, want none", d.Window)
	}
	if err := postgres.PruneDiagnostics(t.Context(), f.db.Pool, f.now); err != nil {
		t.Fatal(err)
	}
	if n := rows[int](f.fixture, `select (select count(*) from agent_log) + (select count(*) from agent_diagnostics)`); n[0] != 0 {
		t.Errorf("%d rows are left after two hours", n[0])
	}
}

// TestCloseDiagnostics closes a window: its log and its report are discarded from then on, and the message is sent until the status of the
// agent names it. A window that is opened afterwards is a new one.
func TestCloseDiagnostics(t *testing.T) {
	t.Parallel()
	f := newDiagnosticsFixture(t)
	closeIt := func() []protocol.Diagnostics {
		t.Helper()
		f.sent = nil
		if err := f.CloseDiagnostics(t.Context(), gangnamAgent, "admin:hq"); err != nil {
			t.Fatal(err)
		}
		return f.sent
	}
	nonce := protocol.NewNonce()
	f.report(&protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()})
	if sent := closeIt(); sent != nil {
		t.Errorf("%+v was sent without a window", sent)
	}
	opened := f.open(true)[0].Request
	f.report(&protocol.DiagnosticsStatus{Nonce: nonce, Request: opened})
	f.log(agent("gangnam"), "one")
	f.now = f.now.Add(time.Minute)
	closed := closeIt()
	if len(closed) != 1 || closed[0].Nonce != nonce || closed[0].Seconds != 0 || closed[0].Doctor || closed[0].Request == opened {
		t.Fatalf("got %+v, want a message that closes the window", closed)
	}
	f.log(agent("gangnam"), "two")
	if err := f.DiagnosticsReport(t.Context(), agent("gangnam"), protocol.DiagnosticsReport{Request: opened, Text: "late"}); err != nil {
		t.Fatal(err)
	}
	f.want("one")
	if d := f.show(0); d.Open || d.Received() || !d.Window.EndsAt.Equal(f.now.Truncate(time.Microsecond)) || d.Window.Report != "" || !d.Window.DoctorAt.IsZero() {
		t.Errorf("got %+v, want a window that ended now, without a request of a report", d)
	}
	if sent := f.step(); len(sent) != 1 || sent[0].Request != closed[0].Request {
		t.Errorf("got %+v, want the message again", sent)
	}
	f.report(&protocol.DiagnosticsStatus{Nonce: protocol.NewNonce(), Request: closed[0].Request})
	if sent := f.step(); sent != nil || closeIt() != nil {
		t.Errorf("%+v was sent after the agent has closed its window", sent)
	}
	if sent := f.open(false); len(sent) != 1 || sent[0].Seconds != 600 || sent[0].Doctor {
		t.Errorf("got %+v, want a new window without a report", sent)
	}
	f.want()
	f.log(agent("gangnam"), "three")
	f.want("three")
	if d := f.show(0); !d.Open || !d.Window.OpenedAt.Equal(f.now.Truncate(time.Microsecond)) {
		t.Errorf("got %+v, want a new window", d)
	}
	closeIt()
	f.now = f.now.Add(10 * time.Minute)
	if sent := f.step(); sent != nil {
		t.Errorf("%+v was sent after the window", sent)
	}
	if err := f.CloseDiagnostics(t.Context(), "agent-nowhere", "admin:hq"); !errors.Is(err, postgres.ErrNoAgent) {
		t.Errorf("got %v, want ErrNoAgent", err)
	}
	audited := rows[string](f.fixture, `select actor || ' ' || target from audit where action = 'agent.diagnostics-close' order by id`)
	if want := []string{"admin:hq agent-gangnam", "admin:hq agent-gangnam"}; !slices.Equal(audited, want) {
		t.Errorf("got audit entries %q, want %q", audited, want)
	}
}

// TestDoctorReport checks that a report is stored once, and only for its request.
func TestDoctorReport(t *testing.T) {
	t.Parallel()
	f := newDiagnosticsFixture(t)
	f.report(&protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()})
	put := func(from protocol.Agent, request, text string) {
		t.Helper()
		if err := f.DiagnosticsReport(t.Context(), from, protocol.DiagnosticsReport{Request: request, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	first := f.open(true)[0].Request
	put(agent("hongdae"), first, "of another agent")
	put(agent("gangnam"), protocol.NewNonce(), "of another request")
	put(agent("gangnam"), first, "one")
	put(agent("gangnam"), first, "repeated")
	if w := f.show(0).Window; w.Report != "one" || w.ReportAt.IsZero() {
		t.Errorf("got %+v, want the first report", w)
	}
	second := f.open(true)[0].Request
	if w := f.show(0).Window; w.Report != "" || !w.ReportAt.IsZero() {
		t.Errorf("got %+v, want no report until the next one arrives", w)
	}
	put(agent("gangnam"), first, "late")
	put(agent("gangnam"), second, "")
	if w := f.show(0).Window; w.Report != "" || w.ReportAt.IsZero() {
		t.Errorf("got %+v, want an empty report", w)
	}
}

// TestDoctorReportOfAnExtendedWindow extends a window before the agent is connected, or after it has restarted: the agent knows only the
// later request, which asks for the missing report.
func TestDoctorReportOfAnExtendedWindow(t *testing.T) {
	t.Parallel()
	f := newDiagnosticsFixture(t)
	f.report(&protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()})
	f.open(true)
	sent := f.open(false)
	if len(sent) != 1 || !sent[0].Doctor {
		t.Fatalf("got %+v, want one request with the doctor", sent)
	}
	m := protocol.DiagnosticsReport{Request: sent[0].Request, Text: "one"}
	if err := f.DiagnosticsReport(t.Context(), agent("gangnam"), m); err != nil {
		t.Fatal(err)
	}
	if w := f.show(0).Window; w.Report != "one" || w.ReportAt.IsZero() {
		t.Errorf("got %+v, want the report", w)
	}
}

// TestStoredLogIsBounded has an agent send more than any real one.
func TestStoredLogIsBounded(t *testing.T) {
	t.Parallel()
	f := newDiagnosticsFixture(t)
	f.report(&protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()})
	f.open(false)
	var full protocol.DiagnosticsLog
	for range 50 {
		full.Lines = append(full.Lines, protocol.LogLine{At: f.now, Level: "INFO", Text: strings.Repeat("x", protocol.MaxLogLine)})
	}
	stored := func() (n, bytes int) {
		t.Helper()
		for _, part := range f.show(0).Log {
			n++
			for _, l := range part.Lines {
				bytes += len(l.Text)
			}
		}
		return n, bytes
	}
	for range 30 {
		if err := f.DiagnosticsLog(t.Context(), agent("gangnam"), full); err != nil {
			t.Fatal(err)
		}
	}
	if n, bytes := stored(); n < 10 || bytes > 1<<20 {
		t.Errorf("%d messages of %d bytes are stored, want the last megabyte", n, bytes)
	}
	if _, err := f.db.Pool.Exec(t.Context(), `update agent_diagnostics set messages = 699 where username = $1`, gangnamAgent); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		f.log(agent("gangnam"), fmt.Sprint("line ", n))
	}
	log := f.show(0).Log
	if last := log[len(log)-1].Lines[0].Text; last != "line 0" {
		t.Errorf("got %q as the last line, want the last one within the budget", last)
	}
	f.open(false)
	f.log(agent("gangnam"), "next budget")
	log = f.show(0).Log
	if last := log[len(log)-1].Lines[0].Text; last != "next budget" {
		t.Errorf("got %q as the last line, want one after the extension", last)
	}
}

func TestAgentsWithoutDiagnostics(t *testing.T) {
	t.Parallel()
	f := newDiagnosticsFixture(t)
	f.report(nil)
	if err := f.OpenDiagnostics(t.Context(), gangnamAgent, false, "admin:hq"); !errors.Is(err, device.ErrNoDiagnostics) {
		t.Errorf("an agent of an earlier version: got %v, want ErrNoDiagnostics", err)
	}
	if d := f.show(0); d.Supported() || d.Window != nil || !d.Online {
		t.Errorf("got %+v, want an agent without diagnostics", d)
	}
	f.report(&protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()})
	f.open(false)
	f.report(nil) // replaced by an earlier version
	if sent := f.step(); sent != nil {
		t.Errorf("%+v was sent to an agent of an earlier version", sent)
	}
	if err := postgres.RevokeAgent(t.Context(), f.db.Pool, gangnamAgent); err != nil {
		t.Fatal(err)
	}
	for _, username := range []string{gangnamAgent, "agent-nowhere"} {
		if err := f.OpenDiagnostics(t.Context(), username, false, "admin:hq"); !errors.Is(err, postgres.ErrNoAgent) {
			t.Errorf("%s: got %v, want ErrNoAgent", username, err)
		}
		if _, err := f.ShowDiagnostics(t.Context(), username, 0); !errors.Is(err, postgres.ErrNoAgent) {
			t.Errorf("%s: got %v, want ErrNoAgent", username, err)
		}
	}
}
