package ir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Raw decodes alternating marks and spaces in µs, separated by commas or spaces and optionally in brackets. Spaces may be
// negative, as ESPHome and LOOKin write them; the signs must then alternate.
func Raw(text string) (Signal, error) {
	s, err := raw(text)
	if err != nil {
		return Signal{}, fmt.Errorf("raw: %w", err)
	}
	return s, nil
}

func raw(text string) (Signal, error) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if text, ok = strings.CutSuffix(inner, "]"); !ok {
			return Signal{}, errors.New("closing bracket is missing")
		}
	}
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
	if len(fields) > maxDurations {
		return Signal{}, errors.New("code is too long")
	}
	signed := strings.Contains(text, "-")
	durations := make([]uint32, len(fields))
	for i, f := range fields {
		d, err := strconv.ParseInt(f, 10, 32)
		if err != nil {
			return Signal{}, fmt.Errorf("duration %d is not a number", i+1)
		}
		if signed && (d < 0) != (i%2 == 1) {
			return Signal{}, fmt.Errorf("duration %d has the wrong sign", i+1)
		}
		durations[i] = uint32(max(d, -d))
	}
	return newSignal(defaultCarrier, durations)
}
