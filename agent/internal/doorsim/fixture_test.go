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

// devices are the doors of the branch.
var devices = []string{"front_1", "front_2", "room_1"}

var (
	cloudKey    = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	strangerKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
)

func newID(n uint64) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// fixture is one run: a branch with its Pis, its cloud, the network between them, and what happened.
type fixture struct {
	seed   uint64
	plant  plant
	start  time.Time
	end    time.Time
	net    *network
	cloud  *cloud
	pi     *pi   // the one that is active first
	others []*pi // standby: a replacement, or one on the bench
	thief  thief
	crash  bool    // the first agent crashes right after its first drive, before it can report it
	broker *broker // of runs with whole agents; nil in others

	mu         sync.Mutex
	notes      []note
	violations []string
	counts     map[string]int
	drives     []drive
	refuted    map[[2]string]bool // request and device: an agent reported that the door it drove did not open
}

// drive is one actuation of a lock for a request.
type drive struct {
	request, device string
	at              time.Time // when the driver was called
}

type note struct {
	at   time.Duration
	text string
}

// pi is one machine with a credential of its own. Its agent may be restarted; its relays outlive it.
type pi struct {
	w     *fixture
	name  string // prefix in the trace and in labels of messages; empty for the first one
	from  protocol.Agent
	lines map[string]*relayLine // empty on the bench

	mu     sync.Mutex
	agent  *life // the process that runs, or ran last
	booted time.Time
}

func newPi(w *fixture, name string, doors []string) *pi {
	p := &pi{w: w, name: name, from: protocol.Agent{Branch: branch, Username: protocol.AgentID(branch)}, lines: map[string]*relayLine{}}
	if name != "" {
		p.name = name + " "
		p.from.Username += "-" + name
	}
	for _, device := range doors {
		p.lines[device] = &relayLine{w: w, owner: p.name, device: device, since: w.start}
	}
	return p
}

// pis returns all machines of the branch.
func (w *fixture) pis() []*pi { return append([]*pi{w.pi}, w.others...) }

// life is one process of the agent, from its start to its end.
type life struct {
	pi         *pi
	controller *door.Controller

	cancel context.CancelFunc // ends the whole agent, or the watch of the controller
	ended  chan struct{}      // of a whole agent

	mu     sync.Mutex
	online bool // its doors are locked, and it has a connection
	ends   bool // in order
	died   time.Time
	dies   []func()
}

// onDeath registers a function to call when the process dies.
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

// ending reports whether the process is over or ends in order.
func (l *life) ending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends || !l.died.IsZero()
}

func (l *life) overAt(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.died.IsZero() && !t.Before(l.died)
}

func (w *fixture) note(format string, args ...any) {
	at := time.Since(w.start)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, note{at, fmt.Sprintf(format, args...)})
}

func (w *fixture) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, text)
}

func (w *fixture) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// ends reports whether only messages in transit are left of a run.
func (w *fixture) ends() bool { return time.Now().After(w.end) }

// trace returns all events in order. Events at the same instant have no order.
func (w *fixture) trace() string {
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

// boot starts a process of the agent, unless one runs: two crashes of a run may be less than a start apart.
func (p *pi) boot() {
	w := p.w
	if l := p.process(); l != nil && !l.over() {
		return
	}
	if w.broker != nil {
		p.bootWhole()
		return
	}
	l := &life{pi: p}
	var locks []door.Lock
	for _, device := range slices.Sorted(maps.Keys(p.lines)) {
		kind, _, _ := protocol.ParseDevice(device)
		lock := door.Lock{Device: device, Kind: kind, Relay: relay{gpio.INVALID, p.lines[device], l}}
		if kind == protocol.DoorRoom {
			lock.Sense = sense{gpio.INVALID, p.lines[device]}
		}
		locks = append(locks, lock)
	}
	l.controller = door.NewController(door.Config{
		Branch: branch, Keys: []ed25519.PublicKey{cloudKey.Public().(ed25519.PublicKey)},
		Send:   func(m protocol.Message, life time.Duration) { l.send(m, life) },
		Event:  func(e protocol.Event) { l.event(e) },
		Logger: slog.New(slog.DiscardHandler),
	}, locks)
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	p.mu.Lock()
	p.agent, p.booted = l, time.Now()
	p.mu.Unlock()
	w.note("%sagent starts", p.name)
	l.controller.Relock() // before the first message can arrive, as in agent.Run
	if l.over() {
		return
	}
	go l.controller.Watch(ctx)
	l.mu.Lock()
	l.online = true
	l.mu.Unlock()
	for device, line := range p.lines {
		if f := line.defect(); line.high() && f.kind == "" {
			w.violation("D6: %s%s is driven after the start of the agent", p.name, device)
		}
	}
}

// process returns the agent that runs, or ran last.
func (p *pi) process() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agent
}

// crash kills the process. Whether its lines are released depends on the hardware.
func (p *pi) crash(released bool) {
	l := p.process()
	l.mu.Lock()
	l.died = time.Now()
	dies := l.dies
	l.mu.Unlock()
	p.w.note("%sagent crashes", p.name)
	for _, do := range dies {
		do()
	}
	l.cancel() // the dead process has no effect from here on
	if released {
		for _, line := range p.lines {
			line.off()
		}
	}
}

// stop ends the process in order.
func (p *pi) stop() {
	p.process().close()
	p.crash(true)
}

func (l *life) close() {
	l.mu.Lock()
	l.ends = true
	l.mu.Unlock()
	if l.ended == nil {
		l.controller.Close()
		l.cancel()
		return
	}
	l.cancel()
	<-l.ended
}

// send sends a message of the cloud to one Pi through the codec and the network.
func (p *pi) send(m protocol.Message, request string) {
	payload, err := protocol.Encode(m)
	if err != nil {
		p.w.violation("the cloud cannot encode %+v: %v", m, err)
		return
	}
	p.w.net.toAgent(p.name+string(m.Kind())+" "+request, func() { p.deliver(m.Kind(), payload) })
}

// deliver passes a message to the agent that is running, as agent.receive does.
func (p *pi) deliver(kind protocol.Kind, payload []byte) {
	if p.w.broker != nil {
		p.w.broker.send(kind, payload)
		return
	}
	l := p.process()
	if !l.hears() {
		return
	}
	var err error
	switch kind {
	case protocol.KindDoorAsk:
		err = hand(payload, l.controller.Ask)
	case protocol.KindDoorGrant:
		err = hand(payload, l.controller.Grant)
	case protocol.KindDoorDeny:
		err = hand(payload, l.controller.Deny)
	}
	if err != nil {
		p.w.note("%s ignored: %v", kind, err)
	}
}

func hand[M protocol.Message](payload []byte, to func(M)) error {
	m, err := protocol.Decode[M](payload)
	if err == nil {
		to(m)
	}
	return err
}

// send sends a message of the agent to the cloud.
func (l *life) send(m protocol.Message, life time.Duration) {
	if l.over() {
		return
	}
	w, request, device := l.pi.w, "", ""
	switch c := m.(type) {
	case protocol.Claim:
		request = c.RequestID
	case protocol.Result:
		if w.plant == droppedAfterRestart && c.Outcome == protocol.Unknown {
			c.Outcome = protocol.Dropped
			m = c
		}
		request, device = c.RequestID, c.Device
		w.refute(c)
		w.note("%s%s %s %s %s", l.pi.name, c.RequestID, c.Device, c.Outcome, c.Detail)
		w.count("reported " + string(c.Outcome))
	}
	payload, err := protocol.Encode(m)
	if err != nil {
		w.violation("the agent cannot encode %+v: %v", m, err)
		return
	}
	w.net.toCloud(l.pi.name+string(m.Kind())+" "+request+" "+device, time.Now().Add(life), l, func() {
		if err := w.cloud.receivePayload(l.pi.from, m.Kind(), payload); err != nil {
			w.violation("the cloud cannot decode: %v", err)
		}
	})
}

// refute records that an agent reported a door as not open.
func (w *fixture) refute(r protocol.Result) {
	if r.Outcome == protocol.Failed {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refuted[[2]string{r.RequestID, r.Device}] = true
	}
}

// event records the agent's events at a door. The drives of a line are sequential, so its last drive is the event's.
func (l *life) event(e protocol.Event) {
	if l.over() {
		return
	}
	w := l.pi.w
	w.note("%sevent %s %s %s", l.pi.name, e.Kind, e.Device, e.RequestID)
	if e.Kind != protocol.EventEnergized {
		return
	}
	d := drive{e.RequestID, e.Device, l.pi.lines[e.Device].lastDrive()}
	w.mu.Lock()
	again := slices.ContainsFunc(w.drives, func(other drive) bool { return other.request == d.request && other.device == d.device })
	w.drives = append(w.drives, d)
	w.mu.Unlock()
	if w.crash && l.pi == w.pi && len(w.drives) == 1 {
		time.AfterFunc(time.Nanosecond, func() { w.pi.crash(true) })
		time.AfterFunc(300*time.Millisecond, w.pi.boot)
	}
	if again {
		w.violation("D1: %s driven twice for %s", d.device, d.request)
	}
	w.judge(d)
}

// judge checks a drive against the rules at the moment it happens.
func (w *fixture) judge(d drive) {
	c := w.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.table.Row(d.request)
	if r == nil || !slices.Contains(r.Doors, d.device) {
		w.violation("D7: %s driven for the unknown request %s", d.device, d.request)
		return
	}
	if late := d.at.Sub(r.Created); late > model.DriveLimit {
		w.violation("D2: %s driven %v after %s was pressed", d.device, late, d.request)
	}
	gone, cancelled := c.revoked[r.Key]
	if r.Granted.IsZero() || r.Granted.After(d.at) || cancelled && r.Key != "" && !r.Granted.Before(gone) {
		w.violation("D3: %s driven for %s, which was not granted while its reservation was valid", d.device, d.request)
	}
	if failed, is := c.failed[d.request]; is && !d.at.Before(failed) {
		w.violation("D5: %s driven for %s after FAILED", d.device, d.request)
	}
}

// released judges how long a line was driven: as long as the pulse of its last drive, unless a defect, the end of the process
// or its absence is the reason for more or less.
func (w *fixture) released(line *relayLine, driven, since, now time.Time) {
	p := w.pi
	for _, other := range w.others {
		if other.lines[line.device] == line {
			p = other
		}
	}
	p.mu.Lock()
	booted, l := p.booted, p.agent
	p.mu.Unlock()
	end := driven.Add(protocol.DefaultPulse)
	limit, defective := end, false
	for _, f := range line.faults {
		if f.from.Before(now) && f.to.After(limit) {
			limit = f.to
		}
		defective = defective || f.from.Before(now) && f.to.Add(f.slow).After(since)
	}
	if now.Before(end) && booted.Before(driven) && !defective && !l.ending() {
		w.violation("D4: %s was driven for %v, %v too short", line.device, now.Sub(since), end.Sub(now))
	}
	if limit.Before(booted) {
		limit = booted
	}
	if limit = limit.Add(2 * time.Second); now.After(limit) && !l.over() {
		w.violation("D6: %s was driven for %v, %v too long", line.device, now.Sub(since), now.Sub(limit))
	}
}

// close judges the end of the run.
func (w *fixture) close() {
	for _, p := range w.pis() {
		for device, line := range p.lines {
			if line.high() {
				w.violation("D6: %s%s is driven at the end", p.name, device)
			}
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
		for _, device := range r.Doors {
			if r.State == model.Success && !opened[[2]string{r.ID, device}] {
				w.violation("D4: %s is SUCCESS, but %s was not driven", r.ID, device)
			}
			if r.Outcomes[device] == protocol.Opened && !opened[[2]string{r.ID, device}] {
				w.violation("D4: the outcome of %s at %s is opened, but it was not driven", r.ID, device)
			}
		}
		w.judgeFailed(r, opened)
	}
	w.counts["drives"] += len(w.drives)
}

// judgeFailed checks that the doors of a request that FAILED by its results did not open. A door that was driven counts as
// open unless its agent reported that the lock did not confirm.
func (w *fixture) judgeFailed(r *model.Row, driven map[[2]string]bool) {
	all := true
	for _, device := range r.Doors {
		w.mu.Lock()
		refuted := w.refuted[[2]string{r.ID, device}]
		w.mu.Unlock()
		all = all && driven[[2]string{r.ID, device}] && !refuted
	}
	if r.State == model.Failed && r.Detail != model.NoReport && all {
		w.violation("D5: %s is FAILED (%s), but all its doors opened", r.ID, r.Detail)
	}
	if r.Granted.IsZero() && slices.ContainsFunc(r.Doors, func(d string) bool { return driven[[2]string{r.ID, d}] }) {
		w.violation("D5: %s opened a door but was never granted", r.ID)
	}
}
