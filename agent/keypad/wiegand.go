package keypad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// burstGap ends a burst: bits follow each other within 1 to 3 ms.
	burstGap = 25 * time.Millisecond
	// settleTime is added to it on the clock of the process: if that did not run for a while, edges that the kernel has recorded
	// in time arrive after the timer.
	settleTime = 5 * time.Millisecond
	// bitGap is the shortest time between two bits; edges that are closer are noise.
	bitGap   = 200 * time.Microsecond
	maxBits  = 64
	maxEdges = 256

	reopenInterval = time.Second     // between attempts to open a device
	probeInterval  = 5 * time.Second // between checks that a device still exists
)

// Edge is a pulse on one of the two lines of a Wiegand keypad.
type Edge struct {
	One bool      // on D1, otherwise on D0
	At  time.Time // when the interrupt occurred, by the kernel's clock; see KernelStart
	Seq uint32    // counts the edges of both lines, from 1; a gap means that the kernel dropped some
}

// Lines are the two lines of a Wiegand keypad while they are requested.
type Lines interface {
	io.Closer
	// Probe returns an error if the lines no longer exist.
	Probe() error
}

// Wiegand reads a keypad that sends each key as a burst of 4 or 8 bits on two lines. Longer bursts, of card readers, are ignored.
type Wiegand struct {
	open func(edge func(Edge)) (Lines, error)

	mu  sync.Mutex
	err error
}

// NewWiegand returns a keypad. open requests its lines, whose edges are passed to edge in order, one at a time.
func NewWiegand(open func(edge func(Edge)) (Lines, error)) *Wiegand { return &Wiegand{open: open} }

// Err implements Reader.
func (w *Wiegand) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Wiegand) setErr(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// Read implements Reader.
func (w *Wiegand) Read(ctx context.Context, enter Enter) {
	for ctx.Err() == nil {
		w.setErr(w.readLines(ctx, enter))
		pause(ctx, reopenInterval)
	}
}

// readLines reads until the lines are lost or ctx is done.
func (w *Wiegand) readLines(ctx context.Context, enter Enter) error {
	edges := make(chan Edge, maxEdges)
	lines, err := w.open(func(e Edge) {
		select {
		case edges <- e:
		default: // the gap in Seq discards the burst
		}
	})
	if err != nil {
		return fmt.Errorf("keypad: %w", err)
	}
	defer lines.Close()
	w.setErr(nil)
	probe := time.NewTicker(probeInterval)
	defer probe.Stop()
	idle := time.NewTimer(burstGap)
	defer idle.Stop()
	var (
		bits    burst
		entry   Entry
		settled bool // no edge arrived for burstGap, and settleTime has begun
	)
	end := func() {
		if key, ok := bits.key(); ok {
			if digits, complete := entry.Press(key, bits.last); complete {
				enter(digits, bits.last)
			}
		}
		bits = burst{last: bits.last, seq: bits.seq}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-edges:
			if bits.n > 0 && e.At.Sub(bits.last) > burstGap {
				end()
			}
			bits.add(e)
			settled = false
			idle.Reset(burstGap)
		case <-idle.C:
			if settled {
				end()
				continue
			}
			settled = true
			idle.Reset(settleTime)
		case <-probe.C:
			if err := lines.Probe(); err != nil {
				return fmt.Errorf("keypad: %w", err)
			}
		}
	}
}

// burst collects the bits of a key.
type burst struct {
	value uint64
	n     int
	bad   bool
	last  time.Time
	seq   uint32
}

func (b *burst) add(e Edge) {
	if b.n > 0 && e.At.Sub(b.last) < bitGap || b.seq != 0 && e.Seq != b.seq+1 || b.n >= maxBits {
		b.bad = true
	}
	b.value <<= 1
	if e.One {
		b.value |= 1
	}
	b.n, b.last, b.seq = b.n+1, e.At, e.Seq
}

// key returns the key of a complete burst: 4 bits, or 8 bits of which the first four are the complement of the last four.
func (b *burst) key() (key byte, ok bool) {
	value := byte(b.value & 0x0f)
	switch {
	case b.bad:
		return 0, false
	case b.n == 4:
	case b.n == 8 && byte(b.value>>4) == ^value&0x0f:
	default:
		return 0, false
	}
	switch {
	case value <= 9:
		return '0' + value, true
	case value == 10:
		return '*', true
	case value == 11:
		return '#', true
	}
	return 0, false
}

var errGone = errors.New("the device has disappeared")

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
