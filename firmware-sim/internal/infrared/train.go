package infrared

// frameGap is the space, in µs, from which on a receiver takes what follows for
// a new frame. It lies between the longest space inside a frame (Samsung's
// 17,844 µs lead, 25 % late: 22,305) and LG's pause between two (39,750 µs, 25 %
// early: 29,812).
const frameGap = 26_000

// Split cuts a train (µs, mark first) into its frames. A frame starts with a
// mark; a gap that ends it is left out.
func Split(durations []uint32) [][]uint32 {
	var frames [][]uint32
	start := 0
	for i := 1; i < len(durations); i += 2 {
		if durations[i] >= frameGap {
			frames = append(frames, durations[start:i])
			start = i + 1
		}
	}
	if start < len(durations) {
		frames = append(frames, durations[start:])
	}
	return frames
}

// near reports whether a measured duration passes for the nominal one: ±25 %,
// what household receivers accept for each element.
func near(measured, nominal uint32) bool {
	return 4*measured >= 3*nominal && 4*measured <= 5*nominal
}

// Near reports whether two frames are the same within a receiver's tolerance,
// element by element. A final gap that only one of them has is left out.
func Near(measured, nominal []uint32) bool {
	measured, nominal = trimGap(measured), trimGap(nominal)
	if len(measured) != len(nominal) || len(nominal) == 0 {
		return false
	}
	for i := range nominal {
		if !near(measured[i], nominal[i]) {
			return false
		}
	}
	return true
}

// trimGap leaves out the space after the last mark.
func trimGap(frame []uint32) []uint32 {
	if len(frame)%2 == 0 && len(frame) > 0 {
		return frame[:len(frame)-1]
	}
	return frame
}

// pulses reads n pulse-distance bits, in order of arrival: each a mark and then a
// space that is long for one and short for zero.
func pulses(frame []uint32, n int, mark, one, zero uint32) (out []byte, ok bool) {
	if len(frame) < 2*n {
		return nil, false
	}
	out = make([]byte, n)
	for i := range out {
		m, s := frame[2*i], frame[2*i+1]
		if !near(m, mark) {
			return nil, false
		}
		switch {
		case near(s, one):
			out[i] = 1
		case near(s, zero):
		default:
			return nil, false
		}
	}
	return out, true
}
