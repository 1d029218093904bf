package ir

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// repeat returns a frame n times, with gaps of g µs.
func repeat(frame []uint32, g uint32, n int) []uint32 {
	all := slices.Clone(frame)
	for range n - 1 {
		all = append(append(all, g), frame...)
	}
	return all
}

func TestSplit(t *testing.T) {
	t.Parallel()
	frame := make([]uint32, 59) // 59 ms
	for i := range frame {
		frame[i] = 1000
	}
	for _, tt := range []struct {
		name      string
		durations []uint32
		lengths   []int
		bad       bool
	}{
		{"one frame", frame, []int{59}, false},
		{"just fits", append(slices.Clone(frame), 440_000, 1000), []int{61}, false},
		{"does not", append(slices.Clone(frame), 440_000, 1001), []int{59, 1}, false},
		{"a gap longer than everything", append(slices.Clone(frame), 900_000, 1000), []int{59, 1}, false},
		{"ten frames", repeat(frame, 40_000, 10), []int{5*59 + 4, 5*59 + 4}, false}, // five: 295 + 160 ms
		{"no gap in 600 ms", repeat(frame, 1000, 10), nil, true},
		{"too many in little time", repeat(slices.Repeat([]uint32{100}, 599), 20_000, 2), []int{599, 599}, false},
		{"too many without a gap", slices.Repeat([]uint32{100}, 1025), nil, true},
		{"as many as may be", slices.Repeat([]uint32{100}, 1023), []int{1023}, false},
		{"ends on a space", frame[:58], nil, true},
	} {
		parts, err := Split(tt.durations)
		var lengths []int
		for _, p := range parts {
			lengths = append(lengths, len(p.Durations))
		}
		if (err != nil) != tt.bad || !tt.bad && !slices.Equal(lengths, tt.lengths) {
			t.Errorf("%s: got parts of %v durations, %v, want %v", tt.name, lengths, err, tt.lengths)
		}
	}
}

// TestSplitIsLossless checks that the parts and their gaps add up to the signal, and that the kernel accepts each part.
func TestSplitIsLossless(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Uint32Range(1, 60_000), 1, 200).Draw(t, "durations")
		if len(durations)%2 == 0 {
			durations = durations[1:]
		}
		parts, err := Split(durations)
		if err != nil {
			return
		}
		var joined []uint32
		for i, p := range parts {
			var length time.Duration
			for _, d := range p.Durations {
				length += microseconds(d)
			}
			if len(p.Durations)%2 == 0 || len(p.Durations) > maxWriteDurations || length > maxWriteLength {
				t.Fatalf("part %d has %d durations in %v, which exceeds the limits", i, len(p.Durations), length)
			}
			if i > 0 {
				joined = append(joined, uint32(parts[i-1].Gap/time.Microsecond))
			}
			joined = append(joined, p.Durations...)
		}
		if !slices.Equal(joined, durations) {
			t.Fatal("the parts do not add up to the signal")
		}
	})
}
