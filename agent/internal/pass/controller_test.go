package pass

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/yeolda/yeolda/protocol"
)

// pi is a Machine in simulated time without a hardware clock.
type pi struct{ started time.Time }

func (p pi) Uptime() (string, time.Duration) { return "boot", time.Since(p.started) }
func (pi) HardwareClock() (int64, bool)      { return 0, false }

// memory is a Disk that never fails.
type memory map[string][]byte

func (m memory) Read(name string) ([]byte, error) {
	if data, ok := m[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}
func (m memory) Replace(name string, data []byte) error { m[name] = bytes.Clone(data); return nil }
func (m memory) Append(name string, data []byte) error {
	m[name] = append(bytes.Clone(m[name]), data...)
	return nil
}

// newTestController returns a controller that knows the time and has passes for room_1 with these PINs, and counts the openings.
func newTestController(t *testing.T, disk Disk, pins ...string) (d *Controller, opened *int) {
	t.Helper()
	d, opened = newUnlistedController(t, disk)
	if _, err := d.replace(testList(pins...)); err != nil {
		t.Fatal(err)
	}
	return d, opened
}

// newUnlistedController is newTestController without a list of its own.
func newUnlistedController(t *testing.T, disk Disk) (d *Controller, opened *int) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	clock := NewClock(pi{time.Now()}, disk, log)
	b := protocol.Beacon{Nonce: clock.Heartbeat(), Time: time.Now()}
	if err := clock.Beacon(b); err != nil {
		t.Fatal(err)
	}
	opened = new(int)
	var counting sync.Mutex
	d = NewController(Config{Branch: "gangnam", Username: "agent-gangnam", Devices: []string{"room_1"}, Disk: disk, Clock: clock,
		Verify: func(protocol.PassList) error { return nil },
		Open: func(device string, _ protocol.Source, _ time.Time) protocol.Result {
			counting.Lock()
			defer counting.Unlock()
			*opened++
			return protocol.Result{Device: device, Outcome: protocol.Opened}
		},
		Send: func(protocol.Message, time.Duration) {}, Connected: func() bool { return true }, Changed: func() {}, Now: time.Now, Logger: log})
	return d, opened
}

// testList returns a list with passes for room_1.
func testList(pins ...string) protocol.PassList {
	kdf := protocol.KDF{Name: protocol.KDFArgon2id, Time: 1, MemoryKiB: 8, Threads: 1, Salt: base64.StdEncoding.EncodeToString(make([]byte, 16))}
	l := protocol.PassList{Branch: "gangnam", Epoch: 1, Version: 1, IssuedAt: time.Now(), LeaseUntil: time.Now().Add(12 * time.Hour), KDF: kdf}
	for i, pin := range pins {
		hash := argon2.IDKey([]byte(pin), make([]byte, 16), 1, 8, 1, protocol.VerifierSize)
		l.Passes = append(l.Passes, protocol.Pass{Pass: fmt.Sprintf("%08x-9c1e-4b7a-8f62-5d6a0c1b2e3f", i), Doors: []string{"room_1"},
			NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(11 * time.Hour), Verifier: base64.StdEncoding.EncodeToString(hash)})
	}
	return l
}

// TestGuesses types 100,000 random PINs and codes at a keypad as fast as its lock-outs allow.
func TestGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, opened := newTestController(t, memory{}, "482913", "193847", "775512")
		r := rand.New(rand.NewPCG(1, 2))
		judged := 0
		for range 100_000 {
			digits := fmt.Sprintf("%06d", r.IntN(1_000_000))
			if r.IntN(2) == 0 {
				digits = fmt.Sprintf("%08d", r.IntN(100_000_000))
			}
			if v := d.Attempt("room_1", digits, time.Now()); v.Accepted {
				t.Fatalf("%s opened the door", digits)
			} else if v.Reason == protocol.ReasonWrong {
				judged++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if *opened != 0 || judged > 100 {
			t.Errorf("%d openings, %d guesses judged in %v", *opened, judged, 100_000*100*time.Millisecond)
		}
	})
}

// TestLockouts checks the lengths of the lock-outs, that attempts in between neither count nor extend them, that a restart
// neither shortens nor extends one while the time is known, and that a right entry resets the count.
func TestLockouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := memory{}
		d, _ := newTestController(t, disk, "482913")
		lock := func() {
			t.Helper()
			for range 4 {
				if v := d.Attempt("room_1", "000000", time.Now()); v.Reason != protocol.ReasonWrong {
					t.Fatalf("got %+v, want wrong", v)
				}
			}
			if v := d.Attempt("room_1", "000000", time.Now()); v.Reason != protocol.ReasonLockedOut {
				t.Fatalf("got %+v for the fifth wrong attempt, want locked-out", v)
			}
		}
		for _, minutes := range []int{1, 2, 4, 8, 15, 15} {
			lock()
			length := time.Duration(minutes) * time.Minute
			for range 10 {
				time.Sleep(length/10 - time.Second)
				if v := d.Attempt("room_1", "482913", time.Now()); v.Accepted || v.Reason != protocol.ReasonLockedOut {
					t.Fatalf("got %+v during a lock-out of %v", v, length)
				}
			}
			if minutes == 4 {
				d.Wait()
				d, _ = newTestController(t, disk, "482913") // a restart ten seconds before the end
				time.Sleep(9 * time.Second)
				if v := d.Attempt("room_1", "482913", time.Now()); v.Accepted {
					t.Fatal("opened during a lock-out, after a restart")
				}
				time.Sleep(2 * time.Second) // the clocks before and after the restart know the time within bounds
				continue
			}
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Second)
		d.Wait()
		d, _ = newTestController(t, disk, "482913") // the lock-out is over
		if v := d.Attempt("room_1", "482913", time.Now()); !v.Accepted {
			t.Fatalf("got %+v after the lock-out", v)
		}
		lock()
		time.Sleep(time.Minute)
		if v := d.Attempt("room_1", "482913", time.Now()); !v.Accepted {
			t.Errorf("got %+v one minute after the count was reset", v)
		}
	})
}

// TestLockoutBeforeTheClock has an agent restart without the time during a lock-out. It lasts its whole length again, or until a
// beacon shows that it is over.
func TestLockoutBeforeTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := memory{}
		d, _ := newTestController(t, disk, "482913")
		for range 5 {
			d.Attempt("room_1", "000000", time.Now())
		}
		time.Sleep(40 * time.Second)
		config := d.config
		config.Clock = NewClock(pi{time.Now().Add(time.Hour)}, memory{}, config.Logger) // another start of the machine
		restart := func() {
			d.Wait()
			list := d.list
			d = NewController(config)
			d.list = list
		}
		restart()
		want := func(reason string) {
			t.Helper()
			if v := d.Attempt("room_1", "482913", time.Now()); v.Reason != reason {
				t.Errorf("got %+v, want %s", v, reason)
			}
		}
		time.Sleep(30 * time.Second)
		want(protocol.ReasonLockedOut) // 70 seconds after the lock-out began, 30 seconds after the restart
		nonce := config.Clock.Heartbeat()
		if err := config.Clock.Beacon(protocol.Beacon{Nonce: nonce, Time: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if v := d.Attempt("room_1", "482913", time.Now()); !v.Accepted {
			t.Errorf("got %+v after a beacon that shows the end of the lock-out", v)
		}

		for range 5 {
			d.Attempt("room_1", "000000", time.Now())
		}
		config.Clock = NewClock(pi{time.Now()}, memory{}, config.Logger)
		restart()
		time.Sleep(59 * time.Second)
		want(protocol.ReasonLockedOut)
		time.Sleep(time.Second)
		want(protocol.ReasonNoClock)
	})
}

// TestWindowOfPass types a PIN on both sides of each end of its window. After one beacon the agent knows the time within the
// bounds of its delay, so the edges are a second wide here.
func TestWindowOfPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := memory{}
		d, opened := newTestController(t, disk, "482913")
		l := d.list.PassList
		l.Version++
		l.Passes = slices.Clone(l.Passes)
		begin := time.Now().Add(time.Hour)
		l.Passes[0].NotBefore, l.Passes[0].NotAfter = begin, begin.Add(time.Hour)
		if _, err := d.replace(l); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			at     time.Time
			reason string
		}{
			{begin.Add(-time.Second), protocol.ReasonTooEarly}, {begin.Add(time.Second), string(protocol.EntryOpened)},
			{begin.Add(time.Hour - time.Second), string(protocol.EntryOpened)}, {begin.Add(time.Hour + time.Second), protocol.ReasonTooLate},
		} {
			time.Sleep(time.Until(c.at))
			if v := d.Attempt("room_1", "482913", time.Now()); v.Reason != c.reason {
				t.Errorf("%v after the beginning: got %+v, want %s", c.at.Sub(begin), v, c.reason)
			}
		}
		if *opened != 2 {
			t.Errorf("%d openings, want 2", *opened)
		}
	})
}

// TestChangedPass removes the pass of a refunded guest and replaces that of a moved one: as soon as the list is in use, the old
// PINs open nothing and the new one opens.
func TestChangedPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, opened := newTestController(t, memory{}, "482913", "193847")
		for _, pin := range []string{"482913", "193847"} {
			if v := d.Attempt("room_1", pin, time.Now()); !v.Accepted {
				t.Fatalf("%s: %+v", pin, v)
			}
		}
		l := d.list.PassList
		l.Version++
		p := l.Passes[1]
		p.Pass = "ffffffff-9c1e-4b7a-8f62-5d6a0c1b2e3f"
		p.Verifier = base64.StdEncoding.EncodeToString(argon2.IDKey([]byte("775512"), make([]byte, 16), 1, 8, 1, protocol.VerifierSize))
		l.Passes = []protocol.Pass{p}
		if _, err := d.replace(l); err != nil {
			t.Fatal(err)
		}
		for pin, want := range map[string]string{"482913": protocol.ReasonWrong, "193847": protocol.ReasonWrong, "775512": string(protocol.EntryOpened)} {
			if v := d.Attempt("room_1", pin, time.Now()); v.Reason != want {
				t.Errorf("%s after the change: got %+v, want %s", pin, v, want)
			}
		}
		if *opened != 3 {
			t.Errorf("%d openings, want 3", *opened)
		}
	})
}

// TestEveryKeypadAtOnce lets guests type at 25 keypads while a check takes 2.9 seconds: each of them waits and enters. One whose
// turn does not come in time is rejected.
func TestEveryKeypadAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const guests = 25
		var pins []string
		for i := range guests {
			pins = append(pins, fmt.Sprintf("%06d", 100_003+i*7919))
		}
		d, opened := newTestController(t, memory{}, pins...)
		l := d.list.PassList
		l.Version++
		l.Passes = slices.Clone(l.Passes)
		for i := range guests {
			device := fmt.Sprintf("room_%d", i+1)
			d.keypads[device] = &keypad{noted: make(map[string]time.Time)}
			l.Passes[i].Doors = []string{device}
		}
		if _, err := d.replace(l); err != nil {
			t.Fatal(err)
		}
		verdicts := make(chan Verdict)
		d.checks <- struct{}{}
		for i, pin := range pins {
			go func() { verdicts <- d.Attempt(fmt.Sprintf("room_%d", i+1), pin, time.Now()) }()
		}
		time.Sleep(attemptTimeout - 100*time.Millisecond)
		<-d.checks
		for range guests {
			if v := <-verdicts; !v.Accepted {
				t.Errorf("got %+v, want an opened door", v)
			}
		}
		if *opened != guests {
			t.Errorf("%d openings, want %d", *opened, guests)
		}

		d.checks <- struct{}{}
		if v := d.Attempt("room_1", pins[0], time.Now()); v.Reason != protocol.ReasonBusy || *opened != guests {
			t.Errorf("got %+v and %d openings, want %s and %d", v, *opened, protocol.ReasonBusy, guests)
		}
	})
}

// slowDisk is a Disk whose append with this number takes a while, as that of an SD card that erases blocks.
type slowDisk struct {
	memory
	appends, slow int
	takes         time.Duration
}

func (d *slowDisk) Append(name string, data []byte) error {
	if d.appends++; d.appends == d.slow {
		time.Sleep(d.takes)
	}
	return d.memory.Append(name, data)
}

// TestStalledDisk types a PIN again and again while the disk takes 30 seconds for one line. No door opens more than attemptTimeout
// after the last key, an attempt does not wait for the line of its result, and the result is an entry in the end.
func TestStalledDisk(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]int{"begin": 1, "end": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk := &slowDisk{memory: memory{}, slow: line, takes: 30 * time.Second}
				d, opened := newTestController(t, disk, "482913")
				var typed time.Time
				open := d.config.Open
				d.config.Open = func(device string, source protocol.Source, notAfter time.Time) protocol.Result {
					if !time.Now().Before(notAfter) { // the lock's controller refuses it
						return protocol.Result{Device: device, Outcome: protocol.Failed, Detail: "too late"}
					}
					if late := time.Since(typed); late >= attemptTimeout {
						t.Errorf("the door opens %v after the last key", late)
					}
					return open(device, source, notAfter)
				}
				want := 0
				for i := range 3 {
					typed = time.Now()
					v := d.Attempt("room_1", "482913", typed)
					if v.Accepted {
						want++
					}
					if i == 0 && v.Accepted != (line == 2) {
						t.Errorf("first attempt: %+v after %v", v, time.Since(typed))
					}
					if line == 2 && time.Since(typed) > 2*attemptTimeout {
						t.Errorf("an attempt took %v", time.Since(typed))
					}
					time.Sleep(time.Second)
				}
				time.Sleep(time.Minute)
				typed = time.Now()
				if v := d.Attempt("room_1", "482913", typed); !v.Accepted {
					t.Errorf("after the stall: %+v", v)
				}
				want++
				d.Wait()
				got := 0
				for _, e := range d.journal.state.Entries {
					if e.Outcome == protocol.EntryOpened {
						got++
					}
				}
				if *opened != want || got != want {
					t.Errorf("%d openings, %d entries of them, want %d", *opened, got, want)
				}
			})
		})
	}
}

// TestTypedLongAgo judges a valid PIN whose last key is older than attemptTimeout: it opens nothing, and counts as no wrong attempt.
func TestTypedLongAgo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, opened := newTestController(t, memory{}, "482913")
		for range 2 * wrongPerLockout {
			if v := d.Attempt("room_1", "482913", time.Now().Add(-attemptTimeout)); v.Reason != protocol.ReasonBusy {
				t.Fatalf("got %+v, want %s", v, protocol.ReasonBusy)
			}
		}
		if v := d.Attempt("room_1", "482913", time.Now().Add(100*time.Millisecond-attemptTimeout)); !v.Accepted || *opened != 1 {
			t.Errorf("got %+v and %d openings in time, want 1", v, *opened)
		}
		d.Wait()
	})
}

// TestEntryIsSentWhenStored has the disk fail after the lock was driven. The cloud receives the entry when it is on disk: after a restart
// before that, the attempt has another outcome, and so another hash.
func TestEntryIsSentWhenStored(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk := &fullDisk{memory: memory{}}
				sent := make(map[uint64]protocol.PassEntry)
				var end func()
				start := func() *Controller {
					d, _ := newTestController(t, disk, "482913")
					ctx, cancel := context.WithCancel(t.Context())
					d.config.Send = func(m protocol.Message, _ time.Duration) {
						if e, ok := m.(protocol.PassEntry); ok {
							if before, again := sent[e.Entry]; again && before.Hash != e.Hash {
								t.Errorf("entry %d was %s, and is now %s", e.Entry, before.Outcome, e.Outcome)
							}
							sent[e.Entry] = e
						}
					}
					open := d.config.Open
					d.config.Open = func(device string, source protocol.Source, notAfter time.Time) protocol.Result {
						disk.full = len(sent) == 0
						return open(device, source, notAfter)
					}
					done := make(chan struct{})
					go func() { d.Run(ctx); close(done) }()
					end = func() { cancel(); <-done }
					return d
				}
				d := start()
				if v := d.Attempt("room_1", "482913", time.Now()); !v.Accepted {
					t.Fatalf("got %+v", v)
				}
				time.Sleep(7 * resendInterval / 2) // between two attempts to write
				if len(sent) != 0 || d.SelfTest().OK {
					t.Errorf("%d entries sent, self-test %+v while the disk fails", len(sent), d.SelfTest())
				}
				disk.full = false
				want := protocol.EntryOpened
				if restart {
					end()
					d, want = start(), protocol.EntryUnknown
				}
				time.Sleep(3 * resendInterval)
				if sent[1].Outcome != want || !d.SelfTest().OK {
					t.Errorf("got %+v, self-test %+v, want %s", sent[1], d.SelfTest(), want)
				}
				d.Attempt("room_1", "482913", time.Now())
				time.Sleep(3 * resendInterval)
				if sent[2].Previous != sent[1].Hash {
					t.Errorf("entry 2 continues %q, want %q", sent[2].Previous, sent[1].Hash)
				}
				end()
			})
		})
	}
}

// TestFullHouseOffline lets 100 guests in by PIN in an hour without any message from the cloud, and verifies the journal.
func TestFullHouseOffline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := memory{}
		var pins []string
		for i := range 100 {
			pins = append(pins, fmt.Sprintf("%06d", 100_003+i*7919))
		}
		d, opened := newTestController(t, disk, pins...)
		for _, pin := range pins {
			time.Sleep(36 * time.Second)
			if v := d.Attempt("room_1", pin, time.Now()); !v.Accepted {
				t.Fatalf("PIN %s: %+v", pin, v)
			}
		}
		d.Wait()
		j, err := newJournal(disk, "gangnam")
		if err != nil {
			t.Fatal(err)
		}
		if *opened != 100 || len(j.state.Entries) != 100 {
			t.Fatalf("%d openings and %d entries, want 100", *opened, len(j.state.Entries))
		}
		previous := ""
		for i, e := range j.state.Entries {
			if e.Chain() != e.Hash || e.Previous != previous || e.Entry != uint64(i+1) || e.Outcome != protocol.EntryOpened {
				t.Errorf("entry %d: %+v", i+1, e)
			}
			previous = e.Hash
		}
	})
}

// TestJournalOfAnotherBranch checks that a machine that is enrolled in another branch begins a journal of its own, so that no attempt
// at a door of the first branch is shown as one of the second. Used codes and wrong attempts are kept.
func TestJournalOfAnotherBranch(t *testing.T) {
	t.Parallel()
	disk := memory{}
	j, err := newJournal(disk, "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 26, 9, 30, 0, 0, time.UTC)
	entry, err := j.begin(attempt{Device: "room_1", At: at, Source: protocol.SourceCode, Code: &code{"room_1", 7, 0}})
	if err == nil {
		err = j.end(result{Entry: entry, Outcome: protocol.EntryOpened})
	}
	if err == nil {
		err = j.refuse(attempt{Device: "room_1", At: at, Source: protocol.SourcePIN}, protocol.ReasonWrong, 1, time.Time{})
	}
	if err != nil {
		t.Fatal(err)
	}
	first := j.state.Journal
	if j, err = newJournal(disk, "gangnam"); err != nil || j.state.Journal != first || len(j.state.Entries) != 2 {
		t.Fatalf("after a restart: journal %s with %d entries (%v), want %s with 2", j.state.Journal, len(j.state.Entries), err, first)
	}
	if j, err = newJournal(disk, "hongdae"); err != nil || j.state.Journal == first || len(j.state.Entries) != 0 || j.state.Next != 1 || j.state.Last != "" {
		t.Fatalf("in another branch: %+v (%v), want a new journal without entries", j.state, err)
	}
	if j.fresh(code{"room_1", 7, 0}) || j.state.Wrong["room_1"] != 1 {
		t.Error("used codes or wrong attempts were forgotten")
	}
	second := j.state.Journal
	if j, err = newJournal(disk, "hongdae"); err != nil || j.state.Journal != second {
		t.Errorf("after another restart: journal %s (%v), want %s", j.state.Journal, err, second)
	}
}

// TestSurvivingJournal cuts the file at every byte: what is left must verify, and never contain less than what was complete.
func TestSurvivingJournal(t *testing.T) {
	t.Parallel()
	disk := memory{}
	j, err := newJournal(disk, "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	var complete []int // sizes after each attempt
	for i := range 5 {
		entry, err := j.begin(attempt{Device: "room_1", At: at, Source: protocol.SourceCode, Code: &code{"room_1", 7, i}})
		if err != nil {
			t.Fatal(err)
		}
		complete = append(complete, len(disk[journalFile]))
		if err := j.end(result{Entry: entry, Outcome: protocol.EntryOpened}); err != nil {
			t.Fatal(err)
		}
	}
	whole := disk[journalFile]
	for size := complete[0]; size <= len(whole); size++ {
		j, err := newJournal(memory{journalFile: whole[:size]}, "gangnam")
		if err != nil {
			t.Fatal(err)
		}
		for i, end := range complete {
			if size >= end && j.fresh(code{"room_1", 7, i}) {
				t.Fatalf("%d bytes: code %d can be used again", size, i)
			}
		}
		previous := ""
		for _, e := range j.state.Entries {
			if e.Chain() != e.Hash || e.Previous != previous {
				t.Fatalf("%d bytes: %+v", size, e)
			}
			previous = e.Hash
		}
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	if j, err := newJournal(memory{journalFile: damaged}, "gangnam"); err != nil || !j.unproven {
		t.Errorf("a journal damaged in the middle counts as complete (%v)", err)
	}
}

// TestJournalIsNotUsedLate takes the turn after the deadline, when it is free as well: a select alone would choose at random.
func TestJournalIsNotUsedLate(t *testing.T) {
	d := &Controller{turn: make(chan struct{}, 1)}
	for range 100 {
		if d.withJournal(time.Now().Add(-time.Second), func(*journal) { t.Error("used after the deadline") }) {
			t.Fatal("reports that the journal was used")
		}
	}
	if !d.withJournal(time.Now().Add(time.Hour), func(*journal) {}) {
		t.Error("a turn in time was refused")
	}
}
