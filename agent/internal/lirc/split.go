package lirc

import (
	"errors"
	"fmt"
	"time"
)

// The kernel's limits for one write (ir_lirc_transmit_ir of 6.1 and 6.12; later kernels allow one second): the number of
// durations and their sum. A write has an odd number of durations because it ends with a mark.
const (
	maxCount  = 1023
	maxLength = 500 * time.Millisecond
	minGap    = 20 * time.Millisecond // a space this long can be timed by a sleep, which is slightly late
)

// part is one write and the gap after it.
type part struct {
	durations []uint32
	gap       time.Duration
}

// length is the transmission time of the write.
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
		return nil, errors.New("the signal does not end with a mark")
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

// cut returns the index of the last space at which the first write may end, or the length if the whole signal fits.
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
