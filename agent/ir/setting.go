package ir

import "errors"

// Setting is the content of a frame. Its values use the vocabulary of published code sets.
type Setting struct {
	Power   bool
	Mode    string // "cool", "heat", "auto", "dry", "fan"
	Celsius int
	Fan     string // "lowest", "low", "mid", "high", "max", "auto"
	Swing   string // the louvre: "on" or "off"; empty if the frame does not include it
}

// ErrNotUnderstood is returned for a signal that is not a frame of a known protocol or has a wrong checksum.
var ErrNotUnderstood = errors.New("not a frame of a known protocol")

// Decode decodes a frame of any protocol in this package with the tolerance of a real unit: durations may deviate by 25 %.
// The caller splits repeated frames at their gaps.
func Decode(durations []uint32) (Setting, error) {
	if s, err := DecodeLG(durations); err == nil {
		return s, nil
	}
	return DecodeSamsung(durations)
}

// near reports whether a measured duration is within 25 % of the nominal one, the tolerance of household receivers.
func near(measured, nominal uint32) bool {
	return 4*uint64(measured) >= 3*uint64(nominal) && 4*uint64(measured) <= 5*uint64(nominal)
}

// spaceBits reads n bits, in order of arrival, that are encoded in the length of the space after each mark.
func spaceBits(durations []uint32, n int, mark, one, zero uint32) ([]byte, bool) {
	if len(durations) < 2*n {
		return nil, false
	}
	bits := make([]byte, n)
	for i := range bits {
		space := durations[2*i+1]
		switch {
		case !near(durations[2*i], mark):
			return nil, false
		case near(space, one):
			bits[i] = 1
		case !near(space, zero):
			return nil, false
		}
	}
	return bits, true
}

// word returns the bit pattern of a name, or the lowest of several with the same name.
func word(table map[uint32]string, name string) (uint32, bool) {
	best, found := uint32(0), false
	for bits, n := range table {
		if n == name && (!found || bits < best) {
			best, found = bits, true
		}
	}
	return best, found
}
