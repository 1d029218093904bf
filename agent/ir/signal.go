package ir

import (
	"errors"
	"fmt"
	"time"
)

// Limits of a signal. The longest signal of the published sets has 803 durations and lasts about 2 s.
const (
	maxDurations = 4096
	maxLength    = 4 * time.Second
	maxDuration  = uint32(maxLength / time.Microsecond)
)

var errNotASignal = errors.New("not an infrared signal")

// newSignal validates captured durations; a signal that could never be sent is an error. A trailing gap is not part of the signal and
// is removed.
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
			return Signal{}, fmt.Errorf("%w: duration 0", errNotASignal)
		}
		length += uint64(d)
	}
	if length > uint64(maxDuration) {
		return Signal{}, fmt.Errorf("%w: %d ms long", errNotASignal, length/1000)
	}
	if _, err := Split(durations); err != nil {
		return Signal{}, err
	}
	return Signal{CarrierHz: carrierHz, Durations: durations}, nil
}
