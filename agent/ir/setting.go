package ir

import "errors"

// Setting is what a frame tells a unit. The words are those of published code sets.
type Setting struct {
	Power   bool
	Mode    string // "cool", "heat", "auto", "dry", "fan"
	Celsius int
	Fan     string // "lowest", "low", "mid", "high", "max", "auto"
	Swing   string // the louvre: "on", "off"; empty: the frame does not say
}

// ErrNotUnderstood is of a signal that is no frame of a known protocol, or one with a wrong checksum.
var ErrNotUnderstood = errors.New("not a frame of a known protocol")

// Decode reads a frame of any protocol this package speaks, as a unit would: with durations up to a quarter off. Repeated
// and second frames behind a gap are the caller's to split.
func Decode(durations []uint32) (Setting, error) {
	if s, err := DecodeLG(durations); err == nil {
		return s, nil
	}
	return DecodeSamsung(durations)
}

// near reports whether a measured duration passes for the nominal one: ±25 %, what household receivers accept.
func near(measured, nominal uint32) bool {
	return 4*uint64(measured) >= 3*uint64(nominal) && 4*uint64(measured) <= 5*uint64(nominal)
}

// spaceBits reads n bits that are told apart by the length of the space behind each mark, in order of arrival.
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

// word is the value of a name in a table of bit patterns, the lowest where several mean the same.
func word(table map[uint32]string, name string) (uint32, bool) {
	best, found := uint32(0), false
	for bits, n := range table {
		if n == name && (!found || bits < best) {
			best, found = bits, true
		}
	}
	return best, found
}
