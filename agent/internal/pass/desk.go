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

// Config configures a Desk.
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

// Desk judges the attempts at the keypads of a branch. It is safe for concurrent use.
type Desk struct {
	config  Config
	seal    sealKey
	lists   chan protocol.PassList // received, not applied
	stored  condition.Condition    // whether the disk can be written
	acks    chan protocol.PassAck  // received, not handled
	checks  chan struct{}          // holds a token while a PIN is checked
	turn    chan struct{}          // holds a token while the journal is used: a disk can be slow
	journal *journal
	wake    chan struct{} // holds a token if there are entries to send

	mu      sync.Mutex
	list    *list // nil: none
	keypads map[string]*keypad
	failure error // of the last write
}

// keypad holds the limits of one keypad; the number of wrong attempts is in the journal.
type keypad struct {
	lockedUntil time.Time // monotonic
	noted       map[string]time.Time
}

// NewDesk restores the passes from disk. A failure of the disk leaves a desk that rejects every attempt until it works.
func NewDesk(config Config) *Desk {
	d := &Desk{config: config, lists: make(chan protocol.PassList, 1), acks: make(chan protocol.PassAck, 1),
		checks: make(chan struct{}, 1), turn: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		keypads: make(map[string]*keypad)}
	d.stored.Log, d.stored.Name = config.Logger, "storing passes"
	seal, sealErr := loadSealKey(config.Disk, config.Username)
	d.seal = seal
	list, listErr := loadList(config.Disk, config.Username, seal, d.verify)
	d.list = list
	journal, journalErr := newJournal(config.Disk)
	d.journal = journal
	d.record(errors.Join(sealErr, journalErr))
	if listErr != nil {
		config.Logger.Warn("the stored passes are not used", "error", listErr)
	}
	for _, device := range config.Devices {
		k := &keypad{noted: make(map[string]time.Time)}
		// It may have been locked when the agent ended, for a time that is not known any more.
		if wrong := journal.state.Wrong[device]; wrong > 0 && wrong%wrongPerLockout == 0 {
			k.lockedUntil = time.Now().Add(lockout(wrong))
		}
		d.keypads[device] = k
	}
	d.notify()
	return d
}

func (d *Desk) verify(m protocol.PassList) error {
	if m.Branch != d.config.Branch {
		return fmt.Errorf("the list is for branch %s", m.Branch)
	}
	return d.config.Verify(m)
}

// SealKey returns the public key to which the key of the codes is sealed.
func (d *Desk) SealKey() string { return base64.StdEncoding.EncodeToString(d.seal.public[:]) }

// Applied returns the list in use and the state of the clock.
func (d *Desk) Applied() protocol.AppliedPasses {
	d.mu.Lock()
	defer d.mu.Unlock()
	applied := protocol.AppliedPasses{Clock: d.config.Clock.State()}
	if d.list != nil {
		applied.Epoch, applied.Version = d.list.Epoch, d.list.Version
	}
	return applied
}

// SelfTest returns whether the passes can be stored.
func (d *Desk) SelfTest() protocol.SelfTest {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := protocol.SelfTest{Name: "passes", OK: d.failure == nil}
	if d.failure != nil {
		t.Detail = protocol.Clip(d.failure.Error())
	}
	return t
}

// List queues a list that has arrived. Of several, the latest one is applied. It does not block.
func (d *Desk) List(m protocol.PassList) { replaceLatest(d.lists, m) }

// Ack queues an acknowledgement, which covers all earlier ones. It does not block.
func (d *Desk) Ack(m protocol.PassAck) { replaceLatest(d.acks, m) }

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
func (d *Desk) withJournal(notAfter time.Time, use func(*journal)) bool {
	timeout := time.NewTimer(time.Until(notAfter))
	defer timeout.Stop()
	select {
	case d.turn <- struct{}{}:
	case <-timeout.C:
		return false
	}
	defer func() { <-d.turn }()
	if !time.Now().Before(notAfter) { // both had happened, and select chose
		return false
	}
	use(d.journal)
	return true
}

// locked reports whether a keypad is locked.
func (d *Desk) locked(k *keypad) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(k.lockedUntil)
}

// Run applies lists and delivers entries until ctx is done.
func (d *Desk) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { d.deliver(ctx) })
	for {
		select {
		case <-ctx.Done():
			work.Wait()
			return
		case m := <-d.lists:
			d.apply(ctx, m)
		}
	}
}

// apply stores a list, uses it, and acknowledges it once no attempt that began with an earlier list can open a door.
func (d *Desk) apply(ctx context.Context, m protocol.PassList) {
	if err := d.verify(m); err != nil {
		d.config.Logger.Warn("pass list ignored", "epoch", m.Epoch, "version", m.Version, "error", err)
		return
	}
	old, err := d.replace(m)
	if err != nil && !errors.Is(err, errOldList) {
		d.config.Logger.Warn("pass list ignored", "epoch", m.Epoch, "version", m.Version, "error", err)
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
	applied := d.Applied()
	d.config.Send(protocol.PassApplied{Epoch: applied.Epoch, Version: applied.Version}, protocol.ResultTTL)
	d.config.Changed()
}

// replace stores a list and uses it from then on. It returns the list that was in use, if any.
func (d *Desk) replace(m protocol.PassList) (old *list, err error) {
	next, err := newList(m, d.seal)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	old = d.list
	d.mu.Unlock()
	if old != nil && !next.newerThan(old) {
		return nil, errOldList
	}
	if err := storeList(d.config.Disk, d.config.Username, m); err != nil {
		d.record(err)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = next
	return old, nil
}

// Attempt judges what was typed at the keypad of a device, and drives the lock if it is valid. It returns when the result is
// known.
func (d *Desk) Attempt(device, digits string) Verdict {
	began := time.Now()
	d.mu.Lock()
	k := d.keypads[device]
	if k == nil || began.Before(k.lockedUntil) {
		d.mu.Unlock()
		return Verdict{Reason: protocol.ReasonLockedOut}
	}
	list := d.list
	if list != nil {
		list.inFlight.Add(1) // under the lock, so that apply waits for it
		defer list.inFlight.Done()
	}
	d.mu.Unlock()

	a := attempt{Device: device, Source: protocol.SourcePIN}
	if len(digits) == protocol.CodeDigits {
		a.Source = protocol.SourceCode
	}
	if strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		digits = ""
	}
	if _, ok := d.config.Clock.Now(); !ok {
		return d.note(k, a, protocol.ReasonNoClock)
	}
	if list == nil {
		return d.note(k, a, protocol.ReasonNoList)
	}
	if a.Source == protocol.SourceCode {
		return d.enterCode(k, list, a, digits, began)
	}
	return d.enterPIN(k, list, a, digits, began)
}

// enterPIN judges a PIN.
func (d *Desk) enterPIN(k *keypad, l *list, a attempt, pin string, began time.Time) Verdict {
	now, ok := d.config.Clock.Now()
	if !ok || !now.Latest.Before(l.LeaseUntil) {
		return d.note(k, a, protocol.ReasonNoList)
	}
	found, ok := d.check(l, pin, began.Add(attemptTimeout))
	if !ok {
		return d.note(k, a, protocol.ReasonBusy)
	}
	if now, ok = d.config.Clock.Now(); !ok { // the check has taken time
		return d.note(k, a, protocol.ReasonNoClock)
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
		return d.drive(k, a, now, began, left)
	}
	return d.refuse(k, a, now, began, reason)
}

// check compares a PIN with the passes of a list. Checks take turns, because each needs much memory; a keypad passes on one entry
// at a time, so that no more wait than there are keypads. ok is false if the time is over before its turn.
func (d *Desk) check(l *list, pin string, notAfter time.Time) (found []protocol.Pass, ok bool) {
	timeout := time.NewTimer(time.Until(notAfter))
	defer timeout.Stop()
	select {
	case d.checks <- struct{}{}:
		defer func() { <-d.checks }()
	case <-timeout.C:
		return nil, false
	}
	return l.matches(pin), true
}

// enterCode judges a one-time code.
func (d *Desk) enterCode(k *keypad, l *list, a attempt, digits string, began time.Time) Verdict {
	if l.codeKey == nil {
		return d.note(k, a, protocol.ReasonNoList)
	}
	now, ok := d.config.Clock.Now()
	if !ok {
		return d.note(k, a, protocol.ReasonNoClock)
	}
	c, ok := l.find(a.Device, digits, now)
	if !ok {
		return d.refuse(k, a, now, began, protocol.ReasonWrong)
	}
	a.Code = &c
	until := time.Unix(int64(c.Step+2)*int64(protocol.CodeStep/time.Second), 0) //nolint:gosec // a step of this century
	return d.drive(k, a, now, began, until.Sub(now.Latest))
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

// drive writes the attempt to the journal, drives the lock and writes the result. left is how long the attempt stays valid.
func (d *Desk) drive(k *keypad, a attempt, now Span, began time.Time, left time.Duration) Verdict {
	notAfter := began.Add(attemptTimeout)
	if end := time.Now().Add(left); end.Before(notAfter) {
		notAfter = end
	}
	a.At = moment(now)
	entry, refusal := uint64(0), protocol.ReasonBusy
	d.withJournal(notAfter, func(j *journal) { entry, refusal = d.begin(j, k, a, now) })
	switch refusal {
	case "":
	case protocol.ReasonUsed:
		return d.refuse(k, a, now, began, refusal)
	default:
		return Verdict{Reason: refusal}
	}

	r := d.config.Open(a.Device, a.Source, notAfter)
	end := result{Entry: entry, Outcome: protocol.EntryOpened}
	if r.Outcome != protocol.Opened {
		end.Outcome, end.Reason = protocol.EntryFailed, r.Detail
	}
	d.withJournal(time.Now().Add(time.Hour), func(j *journal) { // the door has been driven: the entry waits as long as the disk does
		err := j.end(end)
		if err != nil {
			j.apply(line{End: &end}) // the cloud receives it from memory
		}
		d.record(err)
	})
	d.config.Logger.Info("opened by pass", "device", a.Device, "source", a.Source, "pass", a.Pass, "outcome", end.Outcome, "detail", end.Reason)
	d.notify()
	return Verdict{Accepted: end.Outcome == protocol.EntryOpened, Reason: string(end.Outcome)}
}

// begin writes an attempt to the journal. refusal is why the door must stay closed, or "".
func (d *Desk) begin(j *journal, k *keypad, a attempt, now Span) (entry uint64, refusal string) {
	if d.locked(k) { // since this attempt began
		return 0, protocol.ReasonLockedOut
	}
	if j.unproven {
		j.refuseCodesUntil(protocol.Step(now.Latest)+1, d.config.Devices)
	}
	if a.Code != nil && !j.fresh(*a.Code) {
		return 0, protocol.ReasonUsed
	}
	entry, err := j.begin(a)
	d.record(err)
	if err != nil {
		return 0, protocol.ReasonStorage
	}
	return entry, ""
}

// refuse writes a wrong attempt, and locks the keypad after five in a row.
func (d *Desk) refuse(k *keypad, a attempt, now Span, began time.Time, reason string) Verdict {
	a.At, a.Code = moment(now), nil
	written := d.withJournal(began.Add(attemptTimeout), func(j *journal) {
		if d.locked(k) { // by a concurrent attempt
			reason = protocol.ReasonLockedOut
			return
		}
		wrong := j.state.Wrong[a.Device] + 1
		if wrong%wrongPerLockout == 0 {
			reason = protocol.ReasonLockedOut
			d.mu.Lock()
			k.lockedUntil = time.Now().Add(lockout(wrong))
			d.mu.Unlock()
		}
		err := j.refuse(a, reason, wrong)
		if err != nil {
			j.state.Wrong[a.Device] = wrong // it counts all the same
		}
		d.record(err)
		d.config.Logger.Info("pass refused", "device", a.Device, "source", a.Source, "reason", reason, "wrong", wrong)
	})
	if !written {
		return Verdict{Reason: protocol.ReasonBusy}
	}
	d.notify()
	return Verdict{Reason: reason}
}

// lockout is the time that a keypad is locked after so many wrong attempts in a row.
func lockout(wrong int) time.Duration {
	return min(firstLockout<<min(wrong/wrongPerLockout-1, 8), maxLockout)
}

// note writes an attempt that was not judged, at most one per minute, keypad and reason.
func (d *Desk) note(k *keypad, a attempt, reason string) Verdict {
	a.At = d.config.Now().UTC().Truncate(time.Millisecond)
	if y := a.At.Year(); y < 2000 || y > 2099 { // a clock that was never set; entries have times of this century
		a.At = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if now, ok := d.config.Clock.Now(); ok {
		a.At = moment(now)
	}
	d.mu.Lock()
	last, recent := k.noted[reason]
	recent = recent && time.Since(last) < noteInterval
	if !recent {
		k.noted[reason] = time.Now()
	}
	d.mu.Unlock()
	if !recent {
		d.withJournal(time.Now().Add(attemptTimeout), func(j *journal) { d.record(j.refuse(a, reason, 0)) })
		d.notify()
	}
	return Verdict{Reason: reason}
}

// moment is the time of an entry: the middle of the bounds, in whole milliseconds.
func moment(now Span) time.Time {
	return now.Earliest.Add(now.Latest.Sub(now.Earliest) / 2).UTC().Truncate(time.Millisecond)
}

// record stores and logs whether the disk can be written.
func (d *Desk) record(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
	d.stored.Set(err)
}

func (d *Desk) notify() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// deliver sends entries, oldest first, until the cloud acknowledges them.
func (d *Desk) deliver(ctx context.Context) {
	again := time.NewTicker(resendInterval)
	defer again.Stop()
	sent := uint64(0) // number of the last entry that was sent since the last interval
	for {
		ack := protocol.PassAck{}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case ack = <-d.acks:
		case <-again.C:
			sent = 0
		}
		var entries []protocol.PassEntry
		d.withJournal(time.Now().Add(resendInterval), func(j *journal) {
			j.acknowledge(ack)
			for _, e := range j.state.Entries {
				if e.Entry > sent && len(entries) < maxSent {
					entries = append(entries, e)
				}
			}
		})
		if !d.config.Connected() {
			continue // the outbox has room for what cannot be made again
		}
		for _, e := range entries {
			d.config.Send(e, resendInterval)
			sent = e.Entry
		}
	}
}
