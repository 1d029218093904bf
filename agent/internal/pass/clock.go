package pass

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent/internal/condition"
	"github.com/yeolda/yeolda/protocol"
)

const (
	clockFile = "clock.json"

	// maxDrift is the largest error of a clock that counts by itself: 100 parts per million.
	maxDrift = 10_000
	// beaconTimeout is the age of a heartbeat after which its beacon is ignored.
	beaconTimeout = 30 * time.Second
	// saveInterval is how often the clock is written to disk: it limits both the wear of the SD card and how far a hardware
	// clock can be set back unnoticed while the agent is off.
	saveInterval = 10 * time.Minute
	// hardwareTolerance is how far the hardware clock may deviate from the agent's before it counts as set by another program.
	hardwareTolerance = 3 * time.Second
)

// Machine gives access to the clocks of the machine.
type Machine interface {
	// Uptime returns an id that changes at each start of the machine, and the time since that start, suspended time included.
	Uptime() (boot string, since time.Duration)
	// HardwareClock returns the hardware clock's time in whole seconds; ok is false if there is none or it cannot be read.
	HardwareClock() (seconds int64, ok bool)
}

// Span holds the bounds of the present moment.
type Span struct{ Earliest, Latest time.Time }

// Clock knows the time from signed beacons only. It continues by the time since the machine started, which no program can set.
type Clock struct {
	machine Machine
	disk    Disk
	log     *slog.Logger
	storing condition.Condition

	mu       sync.Mutex
	anchor   anchor
	hardware hardware
	saved    time.Duration // uptime of the last save
	dirty    bool          // the clock is to be saved at the next Check
	nonce    string        // of the latest heartbeat
	sent     time.Duration // its uptime
}

// anchor holds the bounds of the time at one moment. Boot is empty if the time is unknown.
type anchor struct {
	Boot     string        `json:"boot"`
	Uptime   time.Duration `json:"uptime"`
	Earliest time.Time     `json:"earliest"`
	Latest   time.Time     `json:"latest"`
}

// hardware records how the hardware clock related to the time when a beacon set it. Seconds is 0 if it is not trusted.
type hardware struct {
	Seconds  int64     `json:"seconds"`
	Earliest time.Time `json:"earliest"`
	Latest   time.Time `json:"latest"`
}

type storedClock struct {
	Anchor   anchor   `json:"anchor"`
	Hardware hardware `json:"hardware"`
}

// NewClock restores the clock: from the same start of the machine, or from a hardware clock that a beacon has set.
func NewClock(machine Machine, disk Disk, log *slog.Logger) *Clock {
	c := &Clock{machine: machine, disk: disk, log: log, storing: condition.Condition{Log: log, Name: "storing the clock"}}
	var stored storedClock
	if data, err := disk.Read(clockFile); err != nil || json.Unmarshal(data, &stored) != nil {
		return c
	}
	boot, up := machine.Uptime()
	if stored.Anchor.Boot == boot && up >= stored.Anchor.Uptime {
		c.anchor, c.hardware, c.saved = stored.Anchor, stored.Hardware, up
		return c
	}
	span, ok := stored.Hardware.now(read(machine))
	if !ok || span.Latest.Before(stored.Anchor.Earliest) { // it was set back: not now, and not later either, when it shows a later time
		c.dirty = stored.Hardware.Seconds != 0
		return c
	}
	c.anchor, c.hardware, c.saved = anchor{boot, up, span.Earliest, span.Latest}, stored.Hardware, up
	return c
}

// neverSet is the time before which a hardware clock has not been set: without its battery, that of a Pi 5 counts from 1970 since the power
// came back, a chip on I²C from 2000. Related to the time, it would show the same time again after each power cut.
var neverSet = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// reading is the time that the hardware clock showed at some moment of took; seconds is 0 if there is none, or one that has not been set.
type reading struct {
	seconds int64
	took    time.Duration
}

// read reads the hardware clock. Its bus can hang, so the caller holds no lock.
func read(machine Machine) reading {
	_, began := machine.Uptime()
	seconds, ok := machine.HardwareClock()
	_, ended := machine.Uptime()
	if !ok || seconds < neverSet {
		return reading{}
	}
	return reading{seconds, ended - began}
}

// now returns the time that the hardware clock shows.
func (h hardware) now(shown reading) (Span, bool) {
	elapsed := time.Duration(shown.seconds-h.Seconds) * time.Second
	if shown.seconds == 0 || h.Seconds == 0 || elapsed < 0 { // it was set back, or lost its power
		return Span{}, false
	}
	// Each reading may be up to a second old.
	drift := elapsed/maxDrift + time.Second + shown.took
	return Span{h.Earliest.Add(elapsed - drift), h.Latest.Add(elapsed + drift)}, true
}

// Now returns the bounds of the present moment; ok is false while the time is unknown.
func (c *Clock) Now() (now Span, ok bool) {
	boot, up := c.machine.Uptime()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked(boot, up)
}

func (c *Clock) nowLocked(boot string, up time.Duration) (Span, bool) {
	elapsed := up - c.anchor.Uptime
	if c.anchor.Boot == "" || c.anchor.Boot != boot || elapsed < 0 {
		return Span{}, false
	}
	drift := elapsed / maxDrift
	return Span{c.anchor.Earliest.Add(elapsed - drift), c.anchor.Latest.Add(elapsed + drift)}, true
}

// State returns the state of the clock for the status.
func (c *Clock) State() protocol.ClockState {
	if _, ok := c.Now(); ok {
		return protocol.ClockTrusted
	}
	return protocol.ClockUntrusted
}

// Heartbeat returns the nonce of a heartbeat that is about to be sent.
func (c *Clock) Heartbeat() string {
	_, up := c.machine.Uptime()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nonce, c.sent = protocol.NewNonce(), up
	return c.nonce
}

// Beacon takes the time of a verified beacon. The cloud read it after the heartbeat was sent and before now.
func (c *Clock) Beacon(m protocol.Beacon) error {
	boot, up := c.machine.Uptime()
	shown := read(c.machine)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Nonce != c.nonce || c.nonce == "" || up-c.sent > beaconTimeout {
		return fmt.Errorf("beacon %s does not answer the latest heartbeat", m.Nonce)
	}
	c.nonce = ""
	earliest, latest := m.Time, m.Time.Add(up-c.sent)
	if before, ok := c.nowLocked(boot, up); ok { // both are right, so the time is within both
		e, l := later(earliest, before.Earliest), earlier(latest, before.Latest)
		if !l.Before(e) {
			earliest, latest = e, l
		}
	}
	known := c.anchor.Boot != ""
	c.anchor = anchor{boot, up, earliest, latest}
	c.observeHardware(shown, earliest, latest)
	c.dirty = c.dirty || !known || up-c.saved >= saveInterval
	return nil
}

// observeHardware relates the hardware clock to the time before it was read. mu is held.
func (c *Clock) observeHardware(shown reading, earliest, latest time.Time) {
	if shown.seconds == 0 {
		return
	}
	if span, trusted := c.hardware.now(shown); trusted && !span.Latest.Before(earliest) && !latest.Before(span.Earliest) &&
		span.Latest.Sub(span.Earliest) < 2*hardwareTolerance {
		return // still right, so there is nothing to write
	}
	c.hardware = hardware{shown.seconds, earliest, latest.Add(shown.took)}
	c.dirty = true
}

// Check writes the clock to disk if necessary, and stops trusting the hardware clock if another program has set it while there was
// no beacon. Call it every few seconds.
func (c *Clock) Check() {
	boot, up := c.machine.Uptime()
	shown := read(c.machine)
	c.mu.Lock()
	now, ok := c.nowLocked(boot, up)
	if ok && c.hardware.Seconds != 0 && !c.hardware.agrees(now, shown) {
		c.log.Warn("the hardware clock was set by another program, or has failed; it is not trusted after a restart")
		c.hardware, c.dirty = hardware{}, true
	}
	save, stored := c.dirty, storedClock{c.anchor, c.hardware}
	if save {
		c.saved, c.dirty = up, false
	}
	c.mu.Unlock()
	if save {
		c.save(stored)
	}
}

// agrees reports whether the hardware clock still shows the time.
func (h hardware) agrees(now Span, shown reading) bool {
	span, ok := h.now(shown)
	return ok && !span.Latest.Add(hardwareTolerance).Before(now.Earliest) && !now.Latest.Add(hardwareTolerance).Before(span.Earliest)
}

// save writes the clock to disk. The caller does not hold mu, because a disk can be slow.
func (c *Clock) save(stored storedClock) {
	data, err := json.Marshal(stored)
	if err == nil {
		err = c.disk.Replace(clockFile, data)
	}
	c.storing.Set(err)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dirty = true
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
