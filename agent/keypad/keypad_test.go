package keypad

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestEntry(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for name, c := range map[string]struct {
		keys string
		gap  time.Duration
		want []string
	}{
		"a PIN":           {"482913#", time.Second, []string{"482913"}},
		"two entries":     {"1#2#", time.Second, []string{"1", "2"}},
		"cleared":         {"12*34#", time.Second, []string{"34"}},
		"nothing":         {"#*#", time.Second, nil},
		"too slow":        {"12#", time.Minute, nil},
		"too many digits": {"12345678901234567890#", 0, []string{"1234567890123456"}},
	} {
		var e Entry
		var got []string
		for i, key := range []byte(c.keys) {
			if digits, ok := e.Press(key, start.Add(time.Duration(i)*c.gap)); ok {
				got = append(got, digits)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestBurst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bits string
		gap  time.Duration
		lost bool
		want byte
	}{
		"4 bits, 0":           {"0000", 2 * time.Millisecond, false, '0'},
		"4 bits, 9":           {"1001", 2 * time.Millisecond, false, '9'},
		"4 bits, *":           {"1010", 2 * time.Millisecond, false, '*'},
		"4 bits, #":           {"1011", 2 * time.Millisecond, false, '#'},
		"8 bits, 5":           {"10100101", time.Millisecond, false, '5'},
		"8 bits, #":           {"01001011", time.Millisecond, false, '#'},
		"8 bits, wrong half":  {"10110101", time.Millisecond, false, 0},
		"4 bits, 15":          {"1111", 2 * time.Millisecond, false, 0},
		"a bit is missing":    {"101", 2 * time.Millisecond, false, 0},
		"a card":              {"10101010101010101010101010", 2 * time.Millisecond, false, 0},
		"noise":               {"1001", 50 * time.Microsecond, false, 0},
		"an edge was dropped": {"1001", 2 * time.Millisecond, true, 0},
	} {
		var b burst
		start := time.Now()
		for i, bit := range []byte(c.bits) {
			seq := uint32(i + 1)
			if c.lost && i > 1 {
				seq++
			}
			b.add(Edge{One: bit == '1', At: start.Add(time.Duration(i) * c.gap), Seq: seq})
		}
		if key, ok := b.key(); key != c.want || ok != (c.want != 0) {
			t.Errorf("%s: got %q, %v, want %q", name, key, ok, c.want)
		}
	}
}

// fakeLines are lines that a test can remove.
type fakeLines struct{ gone chan struct{} }

func (fakeLines) Close() error { return nil }
func (l fakeLines) Probe() error {
	select {
	case <-l.gone:
		return errors.New("no such device")
	default:
		return nil
	}
}

// TestWiegandIsRequestedAgain types a PIN, removes the lines, and types another one after they are back.
func TestWiegandIsRequestedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var send func(Edge)
		gone, missing := make(chan struct{}), false
		w := NewWiegand(func(edge func(Edge)) (Lines, error) {
			if missing {
				return nil, errors.New("no such line")
			}
			send = edge
			return fakeLines{gone}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var entries []string
		go w.Read(ctx, func(digits string, _ time.Time) Verdict { entries = append(entries, digits); return Verdict{} })
		synctest.Wait()
		at, seq := time.Now(), uint32(0)
		press := func(keys ...uint8) {
			for _, key := range keys {
				for bit := 3; bit >= 0; bit-- {
					at, seq = at.Add(2*time.Millisecond), seq+1
					send(Edge{One: key>>bit&1 == 1, At: at, Seq: seq})
				}
				at = at.Add(100 * time.Millisecond)
				time.Sleep(100 * time.Millisecond)
			}
		}
		press(4, 8, 2, 9, 1, 3, 11)
		missing = true
		close(gone)
		time.Sleep(probeInterval + time.Second)
		if w.Err() == nil {
			t.Error("no error while the lines are missing")
		}
		missing, gone, seq = false, make(chan struct{}), 0
		time.Sleep(2 * reopenInterval)
		press(7, 10, 5, 11)
		if want := []string{"482913", "5"}; !slices.Equal(entries, want) || w.Err() != nil {
			t.Errorf("got %v, %v, want %v", entries, w.Err(), want)
		}
	})
}

// TestWiegandOfSleepingProcess delays edges that the kernel recorded in time, as if the process had not run: the key counts.
func TestWiegandOfSleepingProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var send func(Edge)
		w := NewWiegand(func(edge func(Edge)) (Lines, error) {
			send = edge
			return fakeLines{make(chan struct{})}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var entries []string
		go w.Read(ctx, func(digits string, _ time.Time) Verdict { entries = append(entries, digits); return Verdict{} })
		synctest.Wait()
		at, seq := time.Now(), uint32(0)
		for _, key := range []uint8{5, 11} {
			for bit := 3; bit >= 0; bit-- {
				at, seq = at.Add(2*time.Millisecond), seq+1
				send(Edge{One: key>>bit&1 == 1, At: at, Seq: seq})
				time.Sleep(burstGap + settleTime/2)
			}
			at = at.Add(100 * time.Millisecond)
			time.Sleep(100 * time.Millisecond)
		}
		if !slices.Equal(entries, []string{"5"}) {
			t.Errorf("got %v, want 5", entries)
		}
	})
}

// TestAgeOfWaitingKeys types further entries at a Wiegand keypad while the first one is judged for half a minute. They are passed on
// with the time at which they were typed, not that at which they are read.
func TestAgeOfWaitingKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var send func(Edge)
		w := NewWiegand(func(edge func(Edge)) (Lines, error) {
			send = edge
			return fakeLines{make(chan struct{})}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var entries []string
		var ages []time.Duration
		go w.Read(ctx, func(digits string, at time.Time) Verdict {
			entries, ages = append(entries, digits), append(ages, time.Since(at).Round(time.Second))
			if len(entries) == 1 {
				time.Sleep(30 * time.Second)
			}
			return Verdict{}
		})
		synctest.Wait()
		seq := uint32(0)
		press := func(keys ...uint8) {
			for _, key := range keys {
				for bit := 3; bit >= 0; bit-- {
					seq++
					send(Edge{One: key>>bit&1 == 1, At: time.Now(), Seq: seq})
					time.Sleep(2 * time.Millisecond)
				}
				time.Sleep(burstGap)
			}
			time.Sleep(time.Second)
		}
		press(1, 11)
		press(2, 11)
		time.Sleep(10 * time.Second)
		press(3, 7) // the guest leaves; another one comes
		time.Sleep(16 * time.Second)
		press(4, 11)
		time.Sleep(10 * time.Second)
		press(5, 11)
		if want := []string{"1", "2", "4", "5"}; !slices.Equal(entries, want) {
			t.Errorf("got %v, want %v", entries, want)
		}
		if want := []time.Duration{0, 29 * time.Second, time.Second, 0}; !slices.Equal(ages, want) {
			t.Errorf("got the ages %v, want %v", ages, want)
		}
	})
}

// TestKernelStart compares an event's time with the clock of the process.
func TestKernelStart(t *testing.T) {
	t.Parallel()
	a, b := KernelStart(), KernelStart()
	if d := b.Sub(a).Abs(); d > 5*time.Millisecond {
		t.Errorf("two answers differ by %v", d)
	}
}

// event returns an event with a time since the start of the kernel's clock.
func event(at time.Duration) (e [eventSize]byte) {
	if longSize == 8 {
		binary.NativeEndian.PutUint64(e[:], uint64(at/time.Second))
		binary.NativeEndian.PutUint64(e[longSize:], uint64(at%time.Second/time.Microsecond))
	} else {
		binary.NativeEndian.PutUint32(e[:], uint32(at/time.Second))
		binary.NativeEndian.PutUint32(e[longSize:], uint32(at%time.Second/time.Microsecond))
	}
	return e
}

// TestUSB types at a keyboard and scans a code that ends with # and Enter; the device is lost and comes back.
func TestUSB(t *testing.T) {
	t.Parallel()
	devices := make(chan io.ReadCloser, 2)
	u := &USB{open: func() (io.ReadCloser, error) {
		select {
		case d := <-devices:
			return d, nil
		default:
			return nil, errors.New("no such device")
		}
	}, start: time.Now}
	first, keys := io.Pipe()
	second, more := io.Pipe()
	devices <- first
	entries := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		u.Read(ctx, func(digits string, _ time.Time) Verdict { entries <- digits; return Verdict{} })
		close(done)
	}()
	write := func(to io.Writer, kind, code uint16, value uint32) {
		e := event(0)
		binary.NativeEndian.PutUint16(e[eventSize-8:], kind)
		binary.NativeEndian.PutUint16(e[eventSize-6:], code)
		binary.NativeEndian.PutUint32(e[eventSize-4:], value)
		if _, err := to.Write(e[:]); err != nil {
			t.Error(err)
		}
	}
	press := func(to io.Writer, codes ...uint16) {
		for _, code := range codes {
			write(to, eventKey, code, 1)
			write(to, eventSyn, 0, 0)
			write(to, eventKey, code, 0)
		}
	}
	press(keys, 5, 14, 5, 9, 79, 28) // 4, Backspace, 4 8, 1 of the number pad, Enter
	if got := <-entries; got != "481" {
		t.Errorf("got %s, want 481", got)
	}
	press(keys, 2)
	write(keys, eventKey, keyLeftShift, 1)
	write(keys, eventSyn, synDropped, 0) // with the release of Shift
	press(keys, keyThree, 28)
	if got := <-entries; got != "3" {
		t.Errorf("got %s after the release of Shift was dropped, want 3", got)
	}
	press(keys, 2)
	write(keys, eventSyn, synDropped, 0)
	press(keys, 3)
	write(keys, eventKey, keyLeftShift, 1)
	press(keys, keyThree)
	write(keys, eventKey, keyLeftShift, 0)
	if got := <-entries; got != "2" {
		t.Errorf("got %s after keys were dropped, want 2", got)
	}
	keys.Close()
	devices <- second
	press(more, 28, 7, 96)
	if got := <-entries; got != "6" {
		t.Errorf("got %s from the device that came back, want 6", got)
	}
	cancel()
	<-done
}

// TestTimeOfUSBEntry checks that an entry has the time of the kernel's event that completed it.
func TestTimeOfUSBEntry(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-time.Hour)
	device, keys := io.Pipe()
	u := &USB{open: func() (io.ReadCloser, error) { return device, nil }, start: func() time.Time { return start }}
	typed := make(chan time.Time)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		u.Read(ctx, func(_ string, at time.Time) Verdict { typed <- at; return Verdict{} })
		close(done)
	}()
	at := 59*time.Minute + 30*time.Second
	for _, code := range []uint16{2, 28} { // 1, Enter
		at += 1500 * time.Millisecond
		e := event(at)
		binary.NativeEndian.PutUint16(e[eventSize-8:], eventKey)
		binary.NativeEndian.PutUint16(e[eventSize-6:], code)
		binary.NativeEndian.PutUint32(e[eventSize-4:], 1)
		if _, err := keys.Write(e[:]); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := <-typed, start.Add(at); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	cancel()
	<-done
}
