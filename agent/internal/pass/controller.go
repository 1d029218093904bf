package pass

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/agent/internal/condition"
	"github.com/yeolda/yeolda/protocol"
)

const (
	// attemptTimeout is the time from the last digit to the drive; later, the guest has tried again or left. At about 100 ms for
	// each PIN, the guests at 25 keypads who type at the same moment are all judged in time.
	attemptTimeout = 3 * time.Second

	wrongPerLockout = 5
	firstLockout    = time.Minute
	maxLockout      = 15 * time.Minute

	noteInterval = time.Minute // between entries of attempts that nothing can be said about, for each keypad

	resendInterval = 10 * time.Second // of entries that are not acknowledged
	maxSent        = 32               // entries that are sent at a time
)

// Config configures a Controller.
type Config struct {
	Branch   string
	Username string
	Devices  []string // the doors with a keypad
	Disk     Disk
	Clock    *Clock

	// Verify checks the signature of a list with the keys that the agent trusts.
	Verify func(protocol.PassList) error
	// Open drives the lock of a device once, unless notAfter has passed, and returns the confirmed result.
	Open func(device string, source protocol.Source, notAfter time.Time) protocol.Result
	// Send queues a message for the cloud; it is dropped after its lifetime. Send must not block.
	Send func(m protocol.Message, life time.Duration)
	// Connected reports whether messages reach the cloud at present.
	Connected func() bool
	// Changed is called when the list in use changes. It must not block.
	Changed func()

	Now    func() time.Time // system clock, for entries while the time is unknown
	Logger *slog.Logger
}

// Verdict is the result of an attempt.
type Verdict struct {
	Accepted bool // the door is open
	Reason   string
}

// Controller judges the attempts at the keypads of a branch. It is safe for concurrent use.
type Controller struct {
	config  Config
	seal    sealKey
	unsaved bool                   // the seal key is not on disk; used by deliver after the start
	lists   chan protocol.PassList // received, not applied
	stored  condition.Condition    // whether the disk can be written
	acks    chan protocol.PassAck  // received, not handled
	checks  chan struct{}          // holds a token while a PIN is checked
	turn    chan struct{}          // holds a token while the journal is used: a disk can be slow
	journal *journal
	wake    chan struct{}  // holds a token if there are entries to send
	results sync.WaitGroup // being written to the journal
	judging atomic.Int64   // attempts in progress

	mu      sync.Mutex
	list    *list // nil: none
	keypads map[string]*keypad
	failure error // of the last write
}

// keypad holds the limits of one keypad; the number of wrong attempts is in the journal.
type keypad struct {
	lockedUntil time.Time // monotonic
	// over is the end of a lock-out that began before the agent started, by the clock of the beacons; zero: not known.
	over  time.Time
	noted map[string]time.Time
}

// NewController restores the passes from disk. A failure of the disk leaves a controller that rejects every attempt until it works.
func NewController(config Config) *Controller {
	c := &Controller{config: config, lists: make(chan protocol.PassList, 1), acks: make(chan protocol.PassAck, 1),
		checks: make(chan struct{}, 1), turn: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		keypads: make(map[string]*keypad)}
	c.stored.Log, c.stored.Name = config.Logger, "storing passes"
	seal, sealErr := loadSealKey(config.Disk, config.Username)
	c.seal, c.unsaved = seal, sealErr != nil
	list, listErr := loadList(config.Disk, config.Username, seal, c.verify)
	c.list = list
	journal, journalErr := newJournal(config.Disk, config.Branch)
	c.journal = journal
	c.record(errors.Join(sealErr, journalErr))
	if listErr != nil {
		config.Logger.Warn("the stored passes are not used, or not all of them", "error", listErr)
	}
	for _, device := range config.Devices {
		k := &keypad{noted: make(map[string]time.Time)}
		// It may have been locked when the agent ended. Until the time is known, the lock-out counts as just begun.
		if wrong := journal.state.Wrong[device]; wrong > 0 && wrong%wrongPerLockout == 0 {
			k.lockedUntil, k.over = time.Now().Add(lockout(wrong)), journal.state.Locked[device]
		}
		c.keypads[device] = k
	}
	c.notify()
	return c
}

func (c *Controller) verify(m protocol.PassList) error {
	if m.Branch != c.config.Branch {
		return fmt.Errorf("the list is for branch %s", m.Branch)
	}
	return c.config.Verify(m)
}

// SealKey returns the public key to which the key of the codes is sealed.
func (c *Controller) SealKey() string { return base64.StdEncoding.EncodeToString(c.seal.public[:]) }

// Applied returns the list in use and the state of the clock.
func (c *Controller) Applied() protocol.AppliedPasses {
	c.mu.Lock()
	defer c.mu.Unlock()
	applied := protocol.AppliedPasses{Clock: c.config.Clock.State()}
	if c.list != nil {
		applied.Epoch, applied.Version = c.list.Epoch, c.list.Version
	}
	return applied
}

// SelfTest returns whether the passes can be stored.
func (c *Controller) SelfTest() protocol.SelfTest {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := protocol.SelfTest{Name: "passes", OK: c.failure == nil}
	if c.failure != nil {
		t.Detail = protocol.Clip(c.failure.Error())
	}
	return t
}

// List queues a list that has arrived. Of several, the latest one is applied. It does not block.
func (c *Controller) List(m protocol.PassList) { replaceLatest(c.lists, m) }

// Ack queues an acknowledgement, which covers all earlier ones. It does not block.
func (c *Controller) Ack(m protocol.PassAck) { replaceLatest(c.acks, m) }

// replaceLatest puts a value into a channel of one, in place of one that is there.
func replaceLatest[T any](to chan T, value T) {
	for {
		select {
		case to <- value:
			return
		default:
		}
		select {
		case <-to:
		default:
		}
	}
}

// withJournal calls use when it is its turn to use the journal. It reports false if that is not before notAfter.
func (c *Controller) withJournal(notAfter time.Time, use func(*journal)) bool {
	timeout := time.NewTimer(time.Until(notAfter))
	defer timeout.Stop()
	select {
	case c.turn <- struct{}{}:
	case <-timeout.C:
		return false
	}
	defer func() { <-c.turn }()
	if !time.Now().Before(notAfter) { // both had happened, and select chose
		return false
	}
	use(c.journal)
	return true
}

// locked reports whether a keypad is locked.
func (c *Controller) locked(k *keypad) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lockedAt(k, time.Now())
}

// lockedAt reports whether a keypad is locked at a monotonic time. mu is held.
func (c *Controller) lockedAt(k *keypad, at time.Time) bool {
	if !at.Before(k.lockedUntil) {
		return false
	}
	now, ok := c.config.Clock.Now()
	return k.over.IsZero() || !ok || now.Earliest.Before(k.over)
}

// Run applies lists and delivers entries until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { c.deliver(ctx) })
	for {
		select {
		case <-ctx.Done():
			work.Wait()
			return
		case m := <-c.lists:
			c.apply(ctx, m)
		}
	}
}

// apply stores a list, uses it, and acknowledges it once no attempt that began with an earlier list can open a door.
func (c *Controller) apply(ctx context.Context, m protocol.PassList) {
	if err := c.verify(m); err != nil {
		c.config.Logger.Warn("pass list ignored", "epoch", m.Epoch, "version", m.Version, "error", err)
		return
	}
	old, err := c.replace(m)
	if err != nil && !errors.Is(err, errOldList) {
		c.config.Logger.Warn("pass list ignored", "epoch", m.Epoch, "version", m.Version, "error", err)
		return
	}
	if old != nil {
		done := make(chan struct{})
		go func() { old.inFlight.Wait(); close(done) }()
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
	applied := c.Applied()
	c.config.Send(protocol.PassApplied{Epoch: applied.Epoch, Version: applied.Version}, protocol.ResultTTL)
	c.config.Changed()
}

// replace stores a list and uses it from then on. It returns the list that was in use, if any.
func (c *Controller) replace(m protocol.PassList) (old *list, err error) {
	next, err := newList(m, c.seal)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	old = c.list
	c.mu.Unlock()
	if old != nil && !next.newerThan(old) {
		return nil, errOldList
	}
	if err := storeList(c.config.Disk, c.config.Username, m); err != nil {
		c.record(err)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = next
	return old, nil
}

// Attempt judges what was typed at the keypad of a device, and drives the lock if it is valid. typed is when the last key was pressed.
// It returns when the result is known; the journal receives it afterwards, however slow the disk is.
func (c *Controller) Attempt(device, digits string, typed time.Time) Verdict {
	c.judging.Add(1)
	defer c.judging.Add(-1)
	now := time.Now()
	began := earlier(typed, now)
	c.mu.Lock()
	k := c.keypads[device]
	if k == nil || c.lockedAt(k, now) {
		c.mu.Unlock()
		return Verdict{Reason: protocol.ReasonLockedOut}
	}
	list := c.list
	if list != nil {
		list.inFlight.Add(1) // under the lock, so that apply waits for it
		defer list.inFlight.Done()
	}
	c.mu.Unlock()

	a := attempt{Device: device, Source: protocol.SourcePIN}
	if len(digits) == protocol.CodeDigits {
		a.Source = protocol.SourceCode
	}
	if strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		digits = ""
	}
	if now.Sub(began) >= attemptTimeout { // it waited while an earlier entry was judged: the guest has tried again or left
		return c.note(k, a, protocol.ReasonBusy)
	}
	if _, ok := c.config.Clock.Now(); !ok {
		return c.note(k, a, protocol.ReasonNoClock)
	}
	if list == nil {
		return c.note(k, a, protocol.ReasonNoList)
	}
	if a.Source == protocol.SourceCode {
		return c.enterCode(k, list, a, digits, began)
	}
	return c.enterPIN(k, list, a, digits, began)
}

// Idle reports whether no attempt is in progress.
func (c *Controller) Idle() bool { return c.judging.Load() == 0 }

// enterPIN judges a PIN.
func (c *Controller) enterPIN(k *keypad, l *list, a attempt, pin string, began time.Time) Verdict {
	now, ok := c.config.Clock.Now()
	if !ok || !now.Latest.Before(l.LeaseUntil) {
		return c.note(k, a, protocol.ReasonNoList)
	}
	found, ok := c.check(l, pin, began.Add(attemptTimeout))
	if !ok {
		return c.note(k, a, protocol.ReasonBusy)
	}
	if now, ok = c.config.Clock.Now(); !ok { // the check has taken time
		return c.note(k, a, protocol.ReasonNoClock)
	}
	reason := protocol.ReasonWrong
	for _, p := range found {
		why, left := window(p, now)
		if !slices.Contains(p.Doors, a.Device) {
			why = protocol.ReasonOtherDoor
		}
		if a.Pass = p.Pass; why != "" {
			reason = why
			continue
		}
		left = min(left, l.LeaseUntil.Sub(now.Latest))
		return c.drive(k, a, now, began, left)
	}
	return c.refuse(k, a, now, began, reason)
}

// check compares a PIN with the passes of a list. Checks take turns, because each needs much memory; a keypad passes on one entry
// at a time, so that no more wait than there are keypads. ok is false if the time is over before its turn.
func (c *Controller) check(l *list, pin string, notAfter time.Time) (found []protocol.Pass, ok bool) {
	timeout := time.NewTimer(time.Until(notAfter))
	defer timeout.Stop()
	select {
	case c.checks <- struct{}{}:
		defer func() { <-c.checks }()
	case <-timeout.C:
		return nil, false
	}
	return l.matches(pin), true
}

// enterCode judges a one-time code.
func (c *Controller) enterCode(k *keypad, l *list, a attempt, digits string, began time.Time) Verdict {
	if l.codeKey == nil {
		return c.note(k, a, protocol.ReasonNoList)
	}
	now, ok := c.config.Clock.Now()
	if !ok {
		return c.note(k, a, protocol.ReasonNoClock)
	}
	found, ok := l.find(a.Device, digits, now)
	if !ok {
		return c.refuse(k, a, now, began, protocol.ReasonWrong)
	}
	a.Code = &found
	until := time.Unix(int64(found.Step+2)*int64(protocol.CodeStep/time.Second), 0) //nolint:gosec // a step of this century
	return c.drive(k, a, now, began, until.Sub(now.Latest))
}

// find returns the code that the digits are, if the agent accepts its step at every moment that now may be.
func (l *list) find(device, digits string, now Span) (code, bool) {
	c := code{Device: protocol.CodeDevice(device)}
	if len(digits) != protocol.CodeDigits {
		return c, false
	}
	c.Index = int(digits[0] - '0')
	first, last := protocol.Step(now.Latest)-1, protocol.Step(now.Earliest)+1
	for c.Step = first; c.Step <= last; c.Step++ {
		if protocol.Code(l.codeKey, l.Branch, c.Device, c.Step, c.Index) == digits {
			return c, true
		}
	}
	return c, false
}

// drive writes the attempt to the journal, drives the lock and has the result written. left is how long the attempt stays valid.
func (c *Controller) drive(k *keypad, a attempt, now Span, began time.Time, left time.Duration) Verdict {
	notAfter := began.Add(attemptTimeout)
	if end := time.Now().Add(left); end.Before(notAfter) {
		notAfter = end
	}
	a.At = moment(now)
	entry, refusal := uint64(0), protocol.ReasonBusy
	c.withJournal(notAfter, func(j *journal) { entry, refusal = c.begin(j, k, a, now) })
	switch refusal {
	case "":
	case protocol.ReasonUsed:
		return c.refuse(k, a, now, began, refusal)
	default:
		return Verdict{Reason: refusal}
	}

	r := c.config.Open(a.Device, a.Source, notAfter)
	end := result{Entry: entry, Outcome: protocol.EntryOpened}
	if r.Outcome != protocol.Opened {
		end.Outcome, end.Reason = protocol.EntryFailed, r.Detail
	}
	c.results.Go(func() { c.finish(end) })
	c.config.Logger.Info("opened by pass", "device", a.Device, "source", a.Source, "pass", a.Pass, "outcome", end.Outcome, "detail", end.Reason)
	return Verdict{Accepted: end.Outcome == protocol.EntryOpened, Reason: string(end.Outcome)}
}

// finish writes the result of an attempt. The door has been driven, so it waits as long as the disk does.
func (c *Controller) finish(end result) {
	c.turn <- struct{}{}
	err := c.journal.end(end)
	if err != nil {
		c.journal.apply(line{End: &end}) // it waits in memory until the disk works
	}
	c.record(err)
	<-c.turn
	c.notify()
}

// Wait returns when the journal has the results of all attempts that have ended. Call it after the last attempt.
func (c *Controller) Wait() { c.results.Wait() }

// begin writes an attempt to the journal. refusal is why the door must stay closed, or "".
func (c *Controller) begin(j *journal, k *keypad, a attempt, now Span) (entry uint64, refusal string) {
	if c.locked(k) { // since this attempt began
		return 0, protocol.ReasonLockedOut
	}
	if j.unproven {
		j.refuseCodesUntil(protocol.Step(now.Latest)+1, c.config.Devices)
	}
	if a.Code != nil && !j.fresh(*a.Code) {
		return 0, protocol.ReasonUsed
	}
	entry, err := j.begin(a)
	c.record(err)
	if err != nil {
		return 0, protocol.ReasonStorage
	}
	return entry, ""
}

// refuse writes a wrong attempt, and locks the keypad after five in a row.
func (c *Controller) refuse(k *keypad, a attempt, now Span, began time.Time, reason string) Verdict {
	a.At, a.Code = moment(now), nil
	written := c.withJournal(began.Add(attemptTimeout), func(j *journal) {
		if c.locked(k) { // by a concurrent attempt
			reason = protocol.ReasonLockedOut
			return
		}
		wrong, locked := j.state.Wrong[a.Device]+1, time.Time{}
		if wrong%wrongPerLockout == 0 {
			reason, locked = protocol.ReasonLockedOut, now.Latest.Add(lockout(wrong)).UTC()
			c.mu.Lock()
			k.lockedUntil, k.over = time.Now().Add(lockout(wrong)), time.Time{}
			c.mu.Unlock()
		}
		err := j.refuse(a, reason, wrong, locked)
		if err != nil {
			j.count(a.Device, wrong, locked) // it counts all the same
		}
		c.record(err)
		c.config.Logger.Info("pass refused", "device", a.Device, "source", a.Source, "reason", reason, "wrong", wrong)
	})
	if !written {
		return Verdict{Reason: protocol.ReasonBusy}
	}
	c.notify()
	return Verdict{Reason: reason}
}

// lockout is the time that a keypad is locked after so many wrong attempts in a row.
func lockout(wrong int) time.Duration {
	return min(firstLockout<<min(wrong/wrongPerLockout-1, 8), maxLockout)
}

// note writes an attempt that was not judged, at most one per minute, keypad and reason.
func (c *Controller) note(k *keypad, a attempt, reason string) Verdict {
	a.At = c.config.Now().UTC().Truncate(time.Millisecond)
	if y := a.At.Year(); y < 2000 || y > 2099 { // a clock that was never set; entries have times of this century
		a.At = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if now, ok := c.config.Clock.Now(); ok {
		a.At = moment(now)
	}
	c.mu.Lock()
	last, recent := k.noted[reason]
	recent = recent && time.Since(last) < noteInterval
	if !recent {
		k.noted[reason] = time.Now()
	}
	c.mu.Unlock()
	if !recent {
		c.withJournal(time.Now().Add(attemptTimeout), func(j *journal) { c.record(j.refuse(a, reason, 0, time.Time{})) })
		c.notify()
	}
	return Verdict{Reason: reason}
}

// moment is the time of an entry: the middle of the bounds, in whole milliseconds.
func moment(now Span) time.Time {
	return now.Earliest.Add(now.Latest.Sub(now.Earliest) / 2).UTC().Truncate(time.Millisecond)
}

// record stores and logs whether the disk can be written.
func (c *Controller) record(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
	c.stored.Set(err)
}

func (c *Controller) notify() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// save writes what the disk did not take.
func (c *Controller) save(j *journal) error {
	if c.unsaved {
		if err := c.seal.store(c.config.Disk, c.config.Username); err != nil {
			return err
		}
		c.unsaved = false
	}
	return j.rewrite()
}

// deliver sends entries, oldest first, until the cloud acknowledges them.
func (c *Controller) deliver(ctx context.Context) {
	again := time.NewTicker(resendInterval)
	defer again.Stop()
	sent := uint64(0) // number of the last entry that was sent since the last interval
	for {
		ack := protocol.PassAck{}
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case ack = <-c.acks:
		case <-again.C:
			sent = 0
		}
		var entries []protocol.PassEntry
		c.withJournal(time.Now().Add(resendInterval), func(j *journal) {
			j.acknowledge(ack)
			if j.damaged || j.behind() || c.unsaved { // the disk has failed; the next guest must not be the first one to find out that it works
				c.record(c.save(j))
			}
			entries = j.unsent(sent, maxSent)
		})
		if !c.config.Connected() {
			continue // the outbox has room for what cannot be made again
		}
		for _, e := range entries {
			c.config.Send(e, resendInterval)
			sent = e.Entry
		}
	}
}
