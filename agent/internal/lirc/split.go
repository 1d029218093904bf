package lirc

import (
	"errors"
	"fmt"
	"time"
)

// The kernel's limits for one write (ir_lirc_transmit_ir of 6.1 and 6.12; later kernels allow a second): durations, and
// their sum. A write has an odd number of them: it ends on a mark.
const (
	maxCount  = 1023
	maxLength = 500 * time.Millisecond
	minGap    = 20 * time.Millisecond // a space this long may be kept by a sleep, which is late by a little
)

// part is one write and the silence after it.
type part struct {
	durations []uint32
	gap       time.Duration
}

// length is how long the write is on the air.
func (p part) length() time.Duration {
	var sum time.Duration
	for _, d := range p.durations {
		sum += microseconds(d)
	}
	return sum
}

// split cuts a signal into writes, as late as the limits allow and only at long spaces.
func split(durations []uint32) ([]part, error) {
	if len(durations)%2 == 0 {
		return nil, errors.New("a signal ends with a mark")
	}
	var parts []part
	for {
		at, ok := cut(durations)
		if !ok {
			return nil, fmt.Errorf("a signal of %d durations has no gap of %v where the kernel's limits need one", len(durations), minGap)
		}
		if at == len(durations) {
			return append(parts, part{durations: durations}), nil
		}
		parts = append(parts, part{durations: durations[:at], gap: microseconds(durations[at])})
		durations = durations[at+1:]
	}
}

// cut gives the index of the last space at which the beginning may be cut off, or the length if all of it fits.
func cut(durations []uint32) (at int, ok bool) {
	var length time.Duration
	for i, d := range durations {
		if i%2 == 1 && microseconds(d) >= minGap {
			at, ok = i, true
		}
		if length += microseconds(d); length > maxLength || i == maxCount {
			return at, ok
		}
	}
	return len(durations), true
}

func microseconds(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
