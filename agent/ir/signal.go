package ir

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of what counts as a signal. The longest of the published sets has 803 durations and lasts about 2 s.
const (
	maxDurations = 4096
	maxLength    = 4 * time.Second
	maxDuration  = uint32(maxLength / time.Microsecond)
)

var errNotASignal = errors.New("not an infrared signal")

// newSignal takes the durations of a code as they were captured: a gap at the end, which is no part of a signal, is
// dropped.
func newSignal(carrierHz int, durations []uint32) (Signal, error) {
	if len(durations)%2 == 0 && len(durations) > 0 {
		durations = durations[:len(durations)-1]
	}
	if len(durations) < 3 || len(durations) > maxDurations {
		return Signal{}, fmt.Errorf("%w: %d durations", errNotASignal, len(durations))
	}
	if carrierHz < 20_000 || carrierHz > 60_000 {
		return Signal{}, fmt.Errorf("%w: carrier of %d Hz", errNotASignal, carrierHz)
	}
	var length uint64
	for _, d := range durations {
		if d == 0 {
			return Signal{}, fmt.Errorf("%w: a duration of 0", errNotASignal)
		}
		length += uint64(d)
	}
	if length > uint64(maxDuration) {
		return Signal{}, fmt.Errorf("%w: %d ms long", errNotASignal, length/1000)
	}
	return Signal{CarrierHz: carrierHz, Durations: durations}, nil
}
