package passsim

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/nacl/box"

	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/agent/internal/door"
	"github.com/yeolda/yeolda/agent/internal/pass"
	"github.com/yeolda/yeolda/protocol"
)

const branch = "gangnam"

var (
	cloudKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	thiefKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	kdf      = protocol.KDF{Name: protocol.KDFArgon2id, Time: 1, MemoryKiB: 8, Threads: 1, Salt: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{3}, 16))}
	devices  = []string{"front_1", "front_2", "room_1", "room_2", "room_3"}
)

// plant is a fault in the agent's surroundings that a run must find.
type plant string

// The planted faults.
const (
	none         plant = ""
	wallClock    plant = "the agent continues the beacon by a clock that can be set"
	anySignature plant = "the signature of a list is not checked"
	lossyJournal plant = "lines of the journal are lost at a power cut"
	lossyList    plant = "a list is lost at a power cut"
	earlyApplied plant = "a list is acknowledged before it is in use"
	rebootTrust  plant = "every start of the machine has the same id"
	hastySale    plant = "time is sold again while an agent may hold a pass for it"
)

// world is one simulated branch.
type world struct {
	plant  plant
	rand   *mathrand.Rand
	start  time.Time
	cloud  *cloud
	agents []*machine

	mu         sync.Mutex
	trace      []string
	violations []string
	counts     map[string]int
}

func (w *world) log(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, time.Since(w.start).String()+" "+fmt.Sprintf(format, args...))
}

func (w *world) violate(format string, args ...any) {
	w.log("VIOLATION: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, time.Since(w.start).String()+" "+fmt.Sprintf(format, args...))
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// guest is a stay with its present PIN.
type guest struct {
	room        string
	pass        protocol.Pass
	pin         string
	cancelled   bool
	earlierPINs []string
	notBefore   time.Time
	notAfter    time.Time
}

// madeCode is a code that the cloud has made.
type madeCode struct {
	device string // protocol.CodeDevice
	at     time.Time
	agent  string // whose key
	used   int
}

// issued is what a list allows, by PIN.
type issued struct {
	list  protocol.PassList
	byPIN map[string]protocol.Pass
}

// cloud makes the lists and codes. It is right by construction.
type cloud struct {
	w       *world
	guests  []*guest
	freed   []*quarantine
	version uint64
	epoch   uint64
	active  *machine
	ids     int
	keys    map[string][]byte // of codes, by agent

	mu      sync.Mutex
	lists   map[string][]issued // by agent, in order
	applied map[string]protocol.PassApplied
	codes   map[string]*madeCode // by digits
	entries map[string]map[uint64]protocol.PassEntry
	last    map[string]uint64 // index digits used, by device and step
}

func (c *cloud) newPIN() string {
	for {
		pin := fmt.Sprintf("%06d", c.w.intN(1_000_000))
		if !slices.ContainsFunc(c.guests, func(g *guest) bool { return g.pin == pin || slices.Contains(g.earlierPINs, pin) }) {
			return pin
		}
	}
}

// renew gives a guest a new pass.
func (c *cloud) renew(g *guest) {
	if g.pin != "" {
		g.earlierPINs = append(g.earlierPINs, g.pin)
	}
	c.ids++
	g.pin = c.newPIN()
	salt, _ := base64.StdEncoding.DecodeString(kdf.Salt)
	hash := argon2.IDKey([]byte(g.pin), salt, kdf.Time, kdf.MemoryKiB, uint8(kdf.Threads), protocol.VerifierSize)
	g.pass = protocol.Pass{
		Pass: fmt.Sprintf("%08x-9c1e-4b7a-8f62-5d6a0c1b2e3f", c.ids), Doors: []string{"front_1", "front_2", g.room},
		NotBefore: g.notBefore, NotAfter: g.notAfter, Verifier: base64.StdEncoding.EncodeToString(hash),
	}
}

// list makes the next list for an agent.
func (c *cloud) list(m *machine) issued {
	c.version++
	now := time.Now().UTC().Truncate(time.Millisecond)
	l := protocol.PassList{Branch: branch, Epoch: c.epoch, Version: c.version, IssuedAt: now, LeaseUntil: now.Add(12 * time.Hour), KDF: kdf, CodeEpoch: 1}
	out := issued{byPIN: map[string]protocol.Pass{}}
	if m == c.active {
		for _, g := range c.guests {
			if !g.cancelled {
				l.Passes = append(l.Passes, g.pass)
				out.byPIN[g.pin] = g.pass
			}
		}
		if seal := m.sealKey(); seal != "" {
			public, _ := base64.StdEncoding.DecodeString(seal)
			sealed, err := box.SealAnonymous(nil, c.keys[m.username], (*[32]byte)(public), rand.Reader)
			if err != nil {
				panic(err)
			}
			l.CodeKey = base64.StdEncoding.EncodeToString(sealed)
		}
	}
	out.list = l.Sign(cloudKey, m.username)
	c.mu.Lock()
	c.lists[m.username] = append(c.lists[m.username], out)
	c.mu.Unlock()
	return out
}

// quarantine is time that a guest left while an agent may hold a pass for it.
type quarantine struct {
	room                string
	notBefore, notAfter time.Time
	pins                []string // that the guest knew
	sold                bool
}

// free begins the quarantine of the time of a guest.
func (c *cloud) free(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freed = append(c.freed, &quarantine{room: g.room, notBefore: g.notBefore, notAfter: g.notAfter, pins: append(slices.Clone(g.earlierPINs), g.pin)})
}

// sell sells the times that no agent may open any more, by the rule of the database (postgres.releaseClean), and lets the new
// guests in.
func (c *cloud) sell() {
	c.mu.Lock()
	var sold []*quarantine
	for _, q := range c.freed {
		if !q.sold && time.Now().Before(q.notAfter) && (c.w.plant == hastySale || !c.mayOpen(q)) {
			q.sold = true
			sold = append(sold, q)
		}
	}
	c.mu.Unlock()
	for _, q := range sold {
		g := &guest{room: q.room, notBefore: q.notBefore, notAfter: q.notAfter}
		c.guests = append(c.guests, g)
		c.renew(g)
		c.w.log("sold %s again, PIN %s", q.room, g.pin)
		c.w.count("sold again")
		c.publish()
		for _, pin := range append(slices.Clone(q.pins), g.pin) { // the guest who left comes, too
			for range 2 {
				time.AfterFunc(max(time.Until(q.notBefore), 0)+time.Duration(c.w.intN(60_000))*time.Millisecond, func() { c.active.enter(q.room, pin) })
			}
		}
	}
}

// mayOpen reports whether an agent may hold a list with a pass for a quarantined time. The caller holds c.mu.
func (c *cloud) mayOpen(q *quarantine) bool {
	for _, m := range c.w.agents {
		for _, l := range c.lists[m.username] {
			if a := c.applied[m.username]; l.list.Epoch < a.Epoch || l.list.Epoch == a.Epoch && l.list.Version < a.Version {
				continue
			}
			for _, p := range l.list.Passes {
				if slices.Contains(p.Doors, q.room) && p.NotAfter.After(q.notBefore) && p.NotBefore.Before(q.notAfter) {
					return true
				}
			}
		}
	}
	return false
}

// publish sends every agent its list.
func (c *cloud) publish() {
	for _, m := range c.w.agents {
		l := c.list(m)
		m.toAgent(func(d *pass.Controller) {
			if c.w.plant == earlyApplied {
				c.receive(m, protocol.PassApplied{Epoch: l.list.Epoch, Version: l.list.Version})
			}
			d.List(l.list)
		})
	}
}

// code makes a one-time code, or returns "" if ten were made for this minute.
func (c *cloud) code(device string) string {
	device = protocol.CodeDevice(device)
	now := time.Now()
	step := protocol.Step(now)
	key := fmt.Sprint(device, step)
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.last[key]
	if i >= protocol.CodesPerStep {
		return ""
	}
	c.last[key]++
	digits := protocol.Code(c.keys[c.active.username], branch, device, step, int(i))
	c.codes[digits] = &madeCode{device: device, at: now, agent: c.active.username}
	return digits
}

// receive handles a message of an agent.
func (c *cloud) receive(m *machine, message protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch msg := message.(type) {
	case protocol.PassApplied:
		if a := c.applied[m.username]; msg.Epoch > a.Epoch || msg.Epoch == a.Epoch && msg.Version > a.Version {
			c.applied[m.username] = msg
		}
	case protocol.PassEntry:
		entries := c.entries[msg.Journal]
		if entries == nil {
			entries = map[uint64]protocol.PassEntry{}
			c.entries[msg.Journal] = entries
		}
		if before, ok := entries[msg.Entry]; ok && before.Hash != msg.Hash {
			c.w.violate("entry %d was delivered twice with different content: %+v, %+v", msg.Entry, before, msg)
		}
		entries[msg.Entry] = msg
		if err := msg.Validate(); err != nil || msg.Chain() != msg.Hash {
			c.w.violate("entry %d does not verify: %v", msg.Entry, err)
		}
		upTo := uint64(0)
		for entries[upTo+1].Entry != 0 {
			upTo++
		}
		if upTo > 0 {
			m.toAgent(func(d *pass.Controller) { d.Ack(protocol.PassAck{Journal: msg.Journal, Entry: upTo}) })
		}
	}
}

// opened holds an opening against what the agent could know.
func (c *cloud) opened(m *machine, device string, source protocol.Source) {
	digits := m.typed(device)
	now := time.Now()
	c.w.log("%s opened %s by %s with %s", m.username, device, source, digits)
	c.w.count("opened by " + string(source))
	if !m.knowsTime() {
		c.w.violate("%s was opened although the agent cannot know the time", device)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if source == protocol.SourceCode {
		made := c.codes[digits]
		switch {
		case made == nil:
			c.w.violate("%s was opened by %s, which is not a code", device, digits)
		case made.device != protocol.CodeDevice(device):
			c.w.violate("%s was opened by a code of %s", device, made.device)
		case made.agent != m.username:
			c.w.violate("%s was opened at %s by a code for %s", device, m.username, made.agent)
		case now.Sub(made.at) >= 121*time.Second:
			c.w.violate("%s was opened by a code that is %v old", device, now.Sub(made.at))
		case made.used > 0:
			c.w.violate("%s was opened by a code that was used before", device)
		}
		if made != nil {
			made.used++
		}
		return
	}
	for _, q := range c.freed {
		if q.sold && q.room == device && slices.Contains(q.pins, digits) && !now.Before(q.notBefore) && now.Before(q.notAfter) {
			c.w.violate("%s was opened by the PIN %s of a guest whose time is sold to another", device, digits)
		}
	}
	acknowledged := c.applied[m.username]
	reason := "no list allows it"
	for _, l := range c.lists[m.username] {
		p, ok := l.byPIN[digits]
		switch {
		case l.list.Epoch < acknowledged.Epoch || l.list.Epoch == acknowledged.Epoch && l.list.Version < acknowledged.Version:
			if ok {
				reason = "only lists before the acknowledged one allow it"
			}
			continue
		case !ok:
			continue
		case !slices.Contains(p.Doors, device):
			reason = "it is another door"
			continue
		case now.Before(p.NotBefore) || !now.Before(p.NotAfter):
			reason = "it is outside of the window"
			continue
		}
		return
	}
	c.w.violate("%s was opened by the PIN %s at %s: %s", device, digits, m.username, reason)
}

// disk keeps what was written before a power cut, and tears the line that is being written.
type disk struct {
	m        *machine
	mu       sync.Mutex
	files    map[string][]byte
	durable  map[string][]byte // with a planted fault: what is on disk in fact
	cutAfter int               // appends until the power is cut; 0: never
	torn     bool              // the cut tears the line
}

func (d *disk) Read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if data, ok := d.files[name]; ok {
		return bytes.Clone(data), nil
	}
	return nil, fs.ErrNotExist
}

var errPower = errors.New("no power")

// of returns the disk as one run of the agent sees it.
func (d *disk) of(r *run) pass.Disk { return &mounted{d, r} }

type mounted struct {
	*disk
	run *run
}

func (d *mounted) Replace(name string, data []byte) error {
	time.Sleep(time.Duration(d.m.w.jitter(400)) * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run.dead() {
		return errPower
	}
	d.files[name] = bytes.Clone(data)
	if d.m.w.plant != lossyList || name != "list.json" || d.durable[name] == nil {
		d.durable[name] = bytes.Clone(data)
	}
	return nil
}

func (d *mounted) Append(name string, data []byte) error {
	time.Sleep(time.Duration(d.m.w.jitter(30)) * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run.dead() {
		return errPower
	}
	cut := false
	if d.cutAfter > 0 {
		d.cutAfter--
		cut = d.cutAfter == 0
	}
	if cut && d.torn {
		data = data[:len(data)/2]
	}
	d.files[name] = append(bytes.Clone(d.files[name]), data...)
	if d.m.w.plant != lossyJournal {
		d.durable[name] = bytes.Clone(d.files[name])
	}
	if cut {
		d.m.w.count("power cut at the journal")
		d.run.kill()
		if d.torn {
			return errPower
		}
	}
	return nil
}

// reboot shows what was durable.
func (d *disk) reboot() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = map[string][]byte{}
	for name, data := range d.durable {
		d.files[name] = bytes.Clone(data)
	}
	d.cutAfter = 0
}

// machine is a Pi with its locks and keypads.
type machine struct {
	w        *world
	username string
	disk     *disk
	cut      bool // from the network
	duration time.Duration

	mu        sync.Mutex
	boots     int
	booted    time.Time
	knows     bool // the time: by a beacon since the start, or by the hardware clock at the start
	rtcGood   bool // a beacon has set the hardware clock, and nothing else since
	hardware  bool // there is a hardware clock that keeps the time
	rtcOffset time.Duration
	wall      time.Duration // offset of the system clock
	run       *run
	latest    map[string]string        // digits by device
	keypads   map[string]chan struct{} // hold a token while an entry is judged: a keypad passes on one at a time
}

// run is one run of the agent on a machine.
type run struct {
	m          *machine
	controller *pass.Controller
	clock      *pass.Clock
	doors      *door.Controller
	cancel     context.CancelFunc
	done       sync.WaitGroup
	mu         sync.Mutex
	over       bool
}

func (r *run) dead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

func (r *run) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.cancel()
}

// Uptime implements pass.Machine.
func (m *machine) Uptime() (string, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	boot := fmt.Sprintf("boot %d", m.boots)
	up := time.Since(m.booted)
	switch m.w.plant {
	case wallClock:
		up += m.wall
	case rebootTrust: // and the time since the start continues across restarts
		return "boot", up + time.Duration(m.boots)*time.Second + m.duration
	}
	return boot, up
}

// HardwareClock implements pass.Machine.
func (m *machine) HardwareClock() (int64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.rtcOffset).Unix(), m.hardware
}

func (m *machine) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.wall)
}

func (m *machine) knowsTime() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.knows
}

func (m *machine) sealKey() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run == nil || m.run.controller == nil {
		return ""
	}
	return m.run.controller.SealKey()
}

func (m *machine) typed(device string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest[device]
}

// boot starts the machine; it is off before.
func (m *machine) boot() {
	m.disk.reboot()
	m.mu.Lock()
	if m.boots > 0 {
		m.duration += time.Since(m.booted)
	}
	m.boots++
	m.booted = time.Now()
	m.knows = m.rtcGood && m.hardware
	m.mu.Unlock()
	m.w.log("%s starts, hardware clock %v, set by a beacon %v", m.username, m.hardware, m.rtcGood)
	m.startAgent()
}

// startAgent starts the agent on a running machine.
func (m *machine) startAgent() {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{m: m, cancel: cancel}
	log := slog.New(slog.DiscardHandler)
	disk := m.disk.of(r)
	locks := make([]door.Lock, len(devices))
	for i, device := range devices {
		kind, _, _ := protocol.ParseDevice(device)
		locks[i] = door.Lock{Device: device, Kind: kind, Relay: new(boardtest.Lock).Relay()}
	}
	r.doors = door.NewController(door.Config{Branch: branch, Logger: log, Send: func(protocol.Message, time.Duration) {},
		Event: func(e protocol.Event) {
			if e.Kind == protocol.EventEnergized {
				if r.dead() {
					m.w.violate("%s was opened by an agent without power", e.Device)
				}
				m.w.cloud.opened(m, e.Device, e.Source)
			}
		}}, locks)
	r.clock = pass.NewClock(m, disk, log)
	r.controller = pass.NewController(pass.Config{
		Branch: branch, Username: m.username, Devices: devices, Disk: disk, Clock: r.clock,
		Verify: func(l protocol.PassList) error {
			if m.w.plant == anySignature {
				return nil
			}
			return l.Verify(m.username, cloudKey.Public().(ed25519.PublicKey))
		},
		Open: func(device string, source protocol.Source, notAfter time.Time) protocol.Result {
			if r.dead() { // the power was cut between the journal and the pulse
				return protocol.Result{Outcome: protocol.Failed}
			}
			return r.doors.Open(device, source, notAfter)
		},
		Send:      func(message protocol.Message, _ time.Duration) { m.toCloud(r, message) },
		Connected: func() bool { return !m.isCut() },
		Changed:   func() {}, Now: m.now, Logger: log,
	})
	m.mu.Lock()
	m.run = r
	m.mu.Unlock()
	r.done.Go(func() { r.controller.Run(ctx) })
	r.done.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for n := 0; ; n++ {
			r.clock.Check()
			if n%6 == 0 {
				m.heartbeat(r)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// stopAgent ends the agent at once, as a power cut or a crash does.
func (m *machine) stopAgent() {
	m.mu.Lock()
	r := m.run
	m.run = nil
	m.mu.Unlock()
	if r == nil {
		return
	}
	m.w.log("%s: the agent stops", m.username)
	r.kill()
	r.doors.Close()
	r.done.Wait()
}

func (m *machine) isCut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cut
}

// heartbeat sends a heartbeat; the cloud answers it with a beacon, and each takes its time.
func (m *machine) heartbeat(r *run) {
	nonce := r.clock.Heartbeat()
	if m.isCut() {
		return
	}
	there, back := time.Duration(m.w.jitter(3000))*time.Millisecond, time.Duration(m.w.jitter(3000))*time.Millisecond
	time.AfterFunc(there, func() {
		b := protocol.Beacon{Branch: branch, BootID: "b", Nonce: nonce, Time: time.Now().UTC().Truncate(time.Millisecond)}
		time.AfterFunc(back, func() {
			if m.isCut() || r.dead() {
				return
			}
			m.mu.Lock()
			m.knows, m.rtcGood = true, m.hardware
			m.mu.Unlock()
			_ = r.clock.Beacon(b)
		})
	})
}

// toAgent delivers a message after a while, unless the network is cut by then.
func (m *machine) toAgent(deliver func(*pass.Controller)) {
	time.AfterFunc(time.Duration(m.w.jitter(2000))*time.Millisecond, func() {
		m.mu.Lock()
		r, cut := m.run, m.cut
		m.mu.Unlock()
		if r != nil && !cut && !r.dead() {
			deliver(r.controller)
		}
	})
}

func (m *machine) toCloud(r *run, message protocol.Message) {
	if r.dead() || m.isCut() {
		return
	}
	if _, ok := message.(protocol.PassApplied); ok && m.w.plant == earlyApplied {
		return
	}
	time.AfterFunc(time.Duration(m.w.jitter(1000))*time.Millisecond, func() { m.w.cloud.receive(m, message) })
}

// enter types digits at a keypad of the machine.
func (m *machine) enter(device, digits string) {
	m.keypads[device] <- struct{}{}
	defer func() { <-m.keypads[device] }()
	m.mu.Lock()
	r := m.run
	if r != nil {
		m.latest[device] = digits
	}
	m.mu.Unlock()
	if r == nil || r.dead() {
		return
	}
	v := r.controller.Attempt(device, digits, time.Now())
	m.w.log("%s: %s typed at %s: %+v", m.username, digits, device, v)
	m.w.count("reason " + strings.Fields(v.Reason + " -")[0])
}

// jitter returns up to n, mostly little.
func (w *world) jitter(n int) int {
	if w.intN(4) > 0 {
		n = n/20 + 1
	}
	return w.intN(n)
}

// intN returns a number from 0 to n-1.
func (w *world) intN(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}
