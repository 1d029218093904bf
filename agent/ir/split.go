package ir

import (
	"errors"
	"fmt"
	"time"
)

// The kernel's limits for one write (ir_lirc_transmit_ir of 6.1 and 6.12; later kernels allow one second): the number of
// durations and their sum. A write has an odd number of durations because it ends with a mark.
const (
	maxWriteDurations = 1023
	maxWriteLength    = 500 * time.Millisecond
	minGap            = 20 * time.Millisecond // a space this long can be timed by a sleep, which is slightly late
)

// Part is one write of a signal and the gap after it.
type Part struct {
	Durations []uint32
	Gap       time.Duration
}

// Length is the transmission time of the write.
func (p Part) Length() time.Duration {
	var sum time.Duration
	for _, d := range p.Durations {
		sum += microseconds(d)
	}
	return sum
}

// Split cuts a signal into writes, as late as the limits allow and only at long spaces. It returns an error for a signal that cannot
// be transmitted.
func Split(durations []uint32) ([]Part, error) {
	if len(durations)%2 == 0 {
		return nil, errors.New("the signal does not end with a mark")
	}
	var parts []Part
	for {
		at, ok := cut(durations)
		if !ok {
			return nil, fmt.Errorf("the signal cannot be sent: it has no gap of %v within %v and %d durations, the kernel's limits",
				minGap, maxWriteLength, maxWriteDurations)
		}
		if at == len(durations) {
			return append(parts, Part{Durations: durations}), nil
		}
		parts = append(parts, Part{Durations: durations[:at], Gap: microseconds(durations[at])})
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
		if length += microseconds(d); length > maxWriteLength || i == maxWriteDurations {
			return at, ok
		}
	}
	return len(durations), true
}

func microseconds(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
