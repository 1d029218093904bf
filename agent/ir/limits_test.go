package ir

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestUnsendableCodeIsRefused: the kernel accepts 500 ms and 1,023 durations at a time, so a code without a gap at which it can be
// cut could be offered but never sent. The message names the limit.
func TestUnsendableCodeIsRefused(t *testing.T) {
	t.Parallel()
	long := slices.Repeat([]uint32{700}, 781) // 547 ms, as the frame of 424 bits of a Hitachi remote
	dense := slices.Repeat([]uint32{400}, 1025)
	fits := slices.Repeat([]uint32{600}, 781)
	twoFrames := append(append(slices.Clone(fits), 20_000), fits...)
	for _, tt := range []struct {
		name      string
		durations []uint32
		limit     string // in the error; empty: the code is accepted
	}{
		{"a long frame", long, "500ms"}, {"too many durations", dense, "1023"}, {"a frame that fits", fits, ""}, {"two frames with a gap", twoFrames, ""},
	} {
		recording := NewRecording("Hitachi", "424", Plan{Modes: []string{"cool"}})
		recorded := recording.Add([]string{"off"}, tt.durations)
		raw := strings.Trim(strings.ReplaceAll(fmt.Sprint(tt.durations), " ", ","), "[]")
		file, loaded := ParseSmartIR(fmt.Appendf(nil, `{"commandsEncoding": "Raw", "commands": {"off": %q, "on": "9000,4500,560"}}`, raw))
		if tt.limit == "" {
			if recorded != nil || loaded != nil || len(file.Skipped) > 0 {
				t.Errorf("%s: got %v, %v, skipped %v, want the code", tt.name, recorded, loaded, file.Skipped)
			}
			continue
		}
		if recorded == nil || !strings.Contains(recorded.Error(), tt.limit) {
			t.Errorf("%s: recording it returned %v, want an error that names %s", tt.name, recorded, tt.limit)
		}
		if loaded != nil || len(file.Skipped) != 1 || !strings.Contains(file.Skipped[0], tt.limit) {
			t.Errorf("%s: got %v, skipped %q, want it skipped with %s", tt.name, loaded, file.Skipped, tt.limit)
		}
	}
}
