package hardware

// frameGap is the space, in µs, from which a receiver starts a new frame. It is between the longest space inside a
// frame (Samsung's lead of 17,844 µs, 25 % late: 22,305) and LG's pause between two (39,750 µs, 25 % early: 29,812).
const frameGap = 26_000

// split divides a train (µs, mark first) into frames. A frame starts with a mark and does not include the gap after it.
func split(durations []uint32) [][]uint32 {
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

// similar reports whether two trains are equal to a household receiver: each duration within 25 % of the nominal one.
func similar(measured, nominal []uint32) bool {
	if len(measured) != len(nominal) {
		return false
	}
	for i, want := range nominal {
		got := uint64(measured[i])
		if 4*got < 3*uint64(want) || 4*got > 5*uint64(want) {
			return false
		}
	}
	return len(nominal) > 0
}
