package agent

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent/internal/logtail"
	"github.com/yeolda/yeolda/protocol"
)

const (
	// logInterval is the interval of messages with lines of the log, and logSize the size of their lines in bytes: about that of a
	// status, so that a weak connection, on which no packet may take three seconds, carries both.
	logInterval = time.Second
	logSize     = 8 << 10
	// logTTL is the lifetime of lines in the outbox.
	logTTL = 10 * time.Second
	// doctorTimeout limits an examination of the machine, and doctorTTL is the lifetime of its report in the outbox.
	doctorTimeout = time.Minute
	doctorTTL     = 30 * time.Second
)

// diagnostics sends the log, and the report of the doctor, while the cloud has a window open (docs/specification.md, Agent protocol
// 29 to 31).
type diagnostics struct {
	me      protocol.Agent
	tail    *logtail.Tail
	doctor  func(context.Context) string
	offer   func(m protocol.Message, life time.Duration) bool // see link.Offer
	send    func(m protocol.Message, life time.Duration)
	refresh func() // publishes the status again
	log     *slog.Logger

	wake chan struct{}    // holds a token if a window was opened or extended
	due  chan examination // holds the one that is due

	mu     sync.Mutex
	status protocol.DiagnosticsStatus
	until  time.Time // end of the window
	fresh  bool      // the window has sent nothing
	sent   uint64    // number of the last line that was sent or omitted
	closed int       // how many windows were closed
}

// examination is one by the doctor.
type examination struct {
	request string
	closed  int // windows that were closed before
}

func newDiagnostics(a *agent) *diagnostics {
	return &diagnostics{
		me: protocol.Agent{Branch: a.config.Branch, Username: a.config.Username}, tail: a.config.Tail, doctor: a.config.Doctor, log: a.log,
		offer: a.link.Offer, send: func(m protocol.Message, life time.Duration) { a.link.Send(m, nil, life) }, refresh: a.link.Refresh,
		wake: make(chan struct{}, 1), due: make(chan examination, 1), status: protocol.DiagnosticsStatus{Nonce: protocol.NewNonce()},
	}
}

// receive opens, extends or closes the window. Calls are sequential.
func (d *diagnostics) receive(m protocol.Diagnostics, keys []ed25519.PublicKey) {
	if m.Nonce != d.current().Nonce {
		return // the cloud repeats its messages
	}
	if err := m.Verify(d.me, keys...); err != nil {
		d.log.Warn("diagnostics refused", "error", err)
		return
	}
	length := time.Duration(m.Seconds) * time.Second
	if length > 0 {
		d.log.Info("diagnostics: the log is sent to the service", "for", length, "doctor", m.Doctor)
	} else {
		d.log.Info("diagnostics: the window was closed")
	}
	closed := d.open(m.Request, length)
	if m.Doctor {
		select {
		case <-d.due: // an older request is superseded
		default:
		}
		d.due <- examination{m.Request, closed}
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
	d.refresh()
}

// open has the window end after a time, at once if it is 0. It returns how many windows were closed.
func (d *diagnostics) open(request string, length time.Duration) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if !now.Before(d.until) {
		d.fresh, d.sent = true, 0
	}
	d.until = now.Add(length)
	d.status = protocol.DiagnosticsStatus{Nonce: protocol.NewNonce(), Request: request}
	if length == 0 {
		d.closed++
	}
	return d.closed
}

// asked reports whether the report of an examination is still wanted.
func (d *diagnostics) asked(e examination) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed == e.closed
}

// current returns the part of the status.
func (d *diagnostics) current() protocol.DiagnosticsStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// left returns the time until the window ends.
func (d *diagnostics) left() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Until(d.until)
}

// run serves windows until ctx is done.
func (d *diagnostics) run(ctx context.Context) {
	var examining sync.WaitGroup
	defer examining.Wait()
	examining.Go(func() { d.examine(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
			if d.left() > 0 { // the token may be of an extension of a window that has ended
				d.serve(ctx)
			}
		}
	}
}

// serve sends lines until the window has ended.
func (d *diagnostics) serve(ctx context.Context) {
	tick := time.NewTicker(logInterval)
	defer tick.Stop()
	for d.left() > 0 {
		d.sendLines()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	d.log.Info("diagnostics: the window has ended")
}

// sendLines sends the lines that were written since the last message. If they are too many, the oldest are omitted. Lines wait while
// other messages wait for the connection.
func (d *diagnostics) sendLines() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !time.Now().Before(d.until) {
		return // it was closed meanwhile
	}
	lines, omitted, last := d.tail.After(d.sent, protocol.MaxLogLines, logSize)
	if d.fresh {
		omitted = 0 // lines from long before the window
	}
	if len(lines) == 0 && omitted == 0 {
		return
	}
	if lines == nil {
		lines = []protocol.LogLine{}
	}
	if d.offer(protocol.DiagnosticsLog{Dropped: omitted, Lines: lines}, logTTL) {
		d.fresh, d.sent = false, last
	}
}

// examine sends the reports that are due until ctx is done.
func (d *diagnostics) examine(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case due := <-d.due:
			limited, cancel := context.WithTimeout(ctx, doctorTimeout)
			text := d.doctor(limited)
			cancel()
			if d.asked(due) {
				d.send(protocol.DiagnosticsReport{Request: due.request, Text: protocol.ClipReport(text)}, doctorTTL)
			}
		}
	}
}

// listTests is the report of an agent without a doctor: its self-tests.
func listTests(tests []protocol.SelfTest) string {
	var text strings.Builder
	for _, t := range tests {
		state := "ok"
		if !t.OK {
			state = "FAIL"
		}
		fmt.Fprintln(&text, strings.TrimSpace(fmt.Sprintf("%-5s %s %s", state, t.Name, t.Detail)))
	}
	return text.String()
}
