package doorsim

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent/internal/door"
	"github.com/yeolda/yeolda/protocol"
	"github.com/yeolda/yeolda/protocol/model"
)

const branch = "gangnam"

var (
	cloudKey    = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	strangerKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
)

func newID(n uint64) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// world is one run: a branch, its cloud, what lies between them, and what happened.
type world struct {
	seed   uint64
	start  time.Time
	end    time.Time
	net    *network
	cloud  *cloud
	lines  map[string]*line
	broker *broker // of worlds with whole agents; nil in others

	mu         sync.Mutex
	agent      *life // the process that runs, or ran last
	booted     time.Time
	notes      []note
	violations []string
	counts     map[string]int
	drives     []drive
	lastDrive  map[string]time.Time // by device: when a driver was last told to energise
}

// drive is a lock that was driven for a request.
type drive struct {
	request, device string
	at              time.Time // when the driver was called
}

type note struct {
	at   time.Duration
	text string
}

// life is one process of the agent, from its start to its end.
type life struct {
	w    *world
	desk *door.Controller

	cancel context.CancelFunc // of a whole agent
	ended  chan struct{}

	mu     sync.Mutex
	online bool // its locks are relocked, and it has a connection
	died   time.Time
	dies   []func()
}

// onDeath has something done when the process dies.
func (l *life) onDeath(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dies = append(l.dies, do)
}

func (l *life) over() bool { return l.overAt(time.Now()) }

func (l *life) hears() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.online && l.died.IsZero()
}

func (l *life) overAt(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.died.IsZero() && !t.Before(l.died)
}

func (w *world) note(format string, args ...any) {
	at := time.Since(w.start)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, note{at, fmt.Sprintf(format, args...)})
}

func (w *world) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, text)
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// ends reports that a run is over but for what is on its way.
func (w *world) ends() bool { return time.Now().After(w.end) }

// trace is everything that happened, in order. What happens in one instant has no order.
func (w *world) trace() string {
	slices.SortFunc(w.notes, func(a, b note) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.text, b.text)
	})
	var b strings.Builder
	for _, n := range w.notes {
		fmt.Fprintf(&b, "%12v  %s\n", n.at, n.text)
	}
	return b.String()
}

// boot starts a process of the agent.
func (w *world) boot() {
	if w.broker != nil {
		w.bootWhole()
		return
	}
	l := &life{w: w}
	var locks []door.Lock
	for _, device := range slices.Sorted(maps.Keys(w.lines)) {
		kind, _, _ := protocol.ParseDevice(device)
		lock := door.Lock{Device: device, Kind: kind, Relay: relay{gpio.INVALID, w.lines[device], l}}
		if kind == protocol.DoorRoom {
			lock.Sense = sense{gpio.INVALID, w.lines[device]}
		}
		locks = append(locks, lock)
	}
	l.desk = door.NewController(door.Config{
		Branch: branch, Keys: []ed25519.PublicKey{cloudKey.Public().(ed25519.PublicKey)},
		Send:   func(m protocol.Message, life time.Duration) { w.fromAgent(l, m, life) },
		Event:  func(e protocol.Event) { w.event(l, e) },
		Logger: slog.New(slog.DiscardHandler),
	}, locks)
	w.mu.Lock()
	w.agent, w.booted = l, time.Now()
	w.mu.Unlock()
	w.note("agent starts")
	l.desk.Relock() // before anybody can reach it, as agent.Run does
	if l.over() {
		return
	}
	l.mu.Lock()
	l.online = true
	l.mu.Unlock()
	for device, line := range w.lines {
		if f := line.defect(); line.high() && f.kind == "" {
			w.violation("D6: %s is driven after the agent has started", device)
		}
	}
}

// process is the agent that runs, or ran last.
func (w *world) process() *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.agent
}

// crash is the end of a process without a word. Whether the hardware lets go of its lines is the hardware's.
func (w *world) crash(letsGo bool) {
	l := w.process()
	l.mu.Lock()
	l.died = time.Now()
	dies := l.dies
	l.mu.Unlock()
	w.note("agent crashes")
	for _, do := range dies {
		do()
	}
	if l.cancel != nil {
		l.cancel() // what it does from here on has no effect
	}
	if letsGo {
		for _, line := range w.lines {
			line.off()
		}
	}
}

// stop is an orderly end.
func (w *world) stop() {
	w.process().close()
	w.crash(true)
}

func (l *life) close() {
	if l.cancel == nil {
		l.desk.Close()
		return
	}
	l.cancel()
	<-l.ended
}

// toAgent sends a message of the cloud through the codec and the network.
func (w *world) toAgent(m protocol.Message, request string) {
	payload, err := protocol.Encode(m)
	if err != nil {
		w.violation("the cloud cannot encode %+v: %v", m, err)
		return
	}
	w.net.toAgent(string(m.Kind())+" "+request, func() { w.deliver(m.Kind(), payload) })
}

// deliver hands a message to the agent that runs now, as agent.receive does.
func (w *world) deliver(kind protocol.Kind, payload []byte) {
	l := w.process()
	if w.broker != nil {
		w.broker.send(kind, payload)
		return
	}
	if !l.hears() {
		return
	}
	var err error
	switch kind {
	case protocol.KindDoorAsk:
		err = hand(payload, l.desk.Ask)
	case protocol.KindDoorGrant:
		err = hand(payload, l.desk.Grant)
	case protocol.KindDoorDeny:
		err = hand(payload, l.desk.Deny)
	}
	if err != nil {
		w.note("%s ignored: %v", kind, err)
	}
}

func hand[M protocol.Message](payload []byte, to func(M)) error {
	m, err := protocol.Decode[M](payload)
	if err == nil {
		to(m)
	}
	return err
}

// fromAgent sends a message of the agent the other way.
func (w *world) fromAgent(l *life, m protocol.Message, life time.Duration) {
	if l.over() {
		return
	}
	payload, err := protocol.Encode(m)
	if err != nil {
		w.violation("the agent cannot encode %+v: %v", m, err)
		return
	}
	request, device := "", ""
	var deliver func() error
	switch m := m.(type) {
	case protocol.Claim:
		request = m.RequestID
		deliver = func() error { return hand(payload, func(m protocol.Claim) { w.cloud.receive(m) }) }
	case protocol.Result:
		request, device = m.RequestID, m.Device
		w.note("%s %s %s %s", m.RequestID, m.Device, m.Outcome, m.Detail)
		w.count("reported " + string(m.Outcome))
		deliver = func() error { return hand(payload, func(m protocol.Result) { w.cloud.receive(m) }) }
	}
	w.net.toCloud(string(m.Kind())+" "+request+" "+device, time.Now().Add(life), l, func() {
		if err := deliver(); err != nil {
			w.violation("the cloud cannot decode: %v", err)
		}
	})
}

// driven notes that a driver is told to energise a relay.
func (w *world) driven(device string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastDrive[device] = time.Now()
}

// event is what the agent tells of a door. One drive of a line follows the other, so the last call is this one's.
func (w *world) event(l *life, e protocol.Event) {
	if l.over() {
		return
	}
	w.note("event %s %s %s", e.Kind, e.Device, e.RequestID)
	if e.Kind != protocol.EventEnergized {
		return
	}
	w.mu.Lock()
	d := drive{e.RequestID, e.Device, w.lastDrive[e.Device]}
	again := slices.ContainsFunc(w.drives, func(other drive) bool { return other.request == d.request && other.device == d.device })
	w.drives = append(w.drives, d)
	w.mu.Unlock()
	if again {
		w.violation("D1: %s driven twice for %s", d.device, d.request)
	}
	w.judge(d)
}

// judge holds a drive against the rules at the moment it happens.
func (w *world) judge(d drive) {
	c := w.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.table.Row(d.request)
	if r == nil || !slices.Contains(r.Doors, d.device) {
		w.violation("D7: %s driven for %s, which nobody asked for", d.device, d.request)
		return
	}
	if late := d.at.Sub(r.Created); late > model.DriveLimit {
		w.violation("D2: %s driven %v after %s was pressed", d.device, late, d.request)
	}
	gone, cancelled := c.revoked[r.Key]
	if r.Granted.IsZero() || r.Granted.After(d.at) || cancelled && r.Key != "" && !r.Granted.Before(gone) {
		w.violation("D3: %s driven for %s, which was not granted while its reservation stood", d.device, d.request)
	}
	if failed, is := c.failed[d.request]; is && !d.at.Before(failed) {
		w.violation("D5: %s driven for %s after FAILED", d.device, d.request)
	}
}

// released judges how long a line was driven: no longer than the pulse of the last drive, or than it cannot be released,
// or than nobody is there to release it.
func (w *world) released(device string, since, now time.Time) {
	w.mu.Lock()
	last, booted, l := w.lastDrive[device], w.booted, w.agent
	w.mu.Unlock()
	limit := last.Add(protocol.DefaultPulse)
	for _, f := range w.lines[device].faults {
		if f.from.Before(now) && f.to.After(limit) {
			limit = f.to
		}
	}
	if limit.Before(booted) {
		limit = booted
	}
	if limit = limit.Add(2 * time.Second); now.After(limit) && !l.over() {
		w.violation("D6: %s was driven for %v, %v too long", device, now.Sub(since), now.Sub(limit))
	}
}

// close judges how the run ended.
func (w *world) close() {
	for device, line := range w.lines {
		if line.high() {
			w.violation("D6: %s is driven for ever", device)
		}
	}
	opened := map[[2]string]bool{}
	for _, d := range w.drives {
		opened[[2]string{d.request, d.device}] = true
	}
	for _, r := range w.cloud.table.Rows() {
		w.count(string(r.State))
		if !r.State.Final() {
			w.violation("D9: %s never ended", r.ID)
		}
		all := true
		for _, device := range r.Doors {
			if r.State == model.Success && !opened[[2]string{r.ID, device}] {
				w.violation("D4: %s is SUCCESS, and %s was not driven", r.ID, device)
			}
			if r.Outcomes[device] == protocol.Opened && !opened[[2]string{r.ID, device}] {
				w.violation("D4: %s was reported as opened for %s, and was not driven", device, r.ID)
			}
			all = all && r.Outcomes[device] == protocol.Opened
		}
		if r.State == model.Failed && r.Detail == "" && all {
			w.violation("D5: %s is FAILED, and all its doors reported opened", r.ID)
		}
		if r.Granted.IsZero() && slices.ContainsFunc(r.Doors, func(d string) bool { return opened[[2]string{r.ID, d}] }) {
			w.violation("D5: %s opened a door and was never granted", r.ID)
		}
	}
	w.counts["drives"] += len(w.drives)
}
