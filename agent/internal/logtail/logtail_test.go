package logtail

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/yeolda/yeolda/protocol"
)

const ample = 1 << 20 // bytes

func texts(lines []protocol.LogLine) string {
	var all []string
	for _, l := range lines {
		all = append(all, l.Level+" "+l.Text)
	}
	return strings.Join(all, "; ")
}

// TestTailKeepsWhatTheLogHas compares the kept lines with those of the log behind, which is at the level of warnings.
func TestTailKeepsWhatTheLogHas(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tail := new(Tail)
	log := slog.New(tail.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))).With("branch", "gangnam")
	log.Debug("not kept")
	log.Info("ready")
	log.WithGroup("door").Warn("no\nline", "device", "room_1", "error", errors.New("a \x1b[2J b"))
	lines, omitted, last := tail.After(0, 10, ample)
	want := `INFO ready branch=gangnam; WARN no line branch=gangnam door.device=room_1 door.error="a \x1b[2J b"`
	if got := texts(lines); got != want || omitted != 0 || last != 2 {
		t.Errorf("got %q, %d omitted, last %d; want %q", got, omitted, last, want)
	}
	if lines[0].At.IsZero() {
		t.Error("a line has no time")
	}
	if got := out.String(); strings.Contains(got, "ready") || !strings.Contains(got, "door.device=room_1") {
		t.Errorf("the log has %q, want the warning only", got)
	}
	if _, err := protocol.Encode(protocol.DiagnosticsLog{Lines: lines}); err != nil {
		t.Error(err)
	}
}

func TestTailReturnsTheNewestLines(t *testing.T) {
	t.Parallel()
	tail := new(Tail)
	log := slog.New(tail.Handler(slog.DiscardHandler))
	add := func(from, to int) {
		for n := from; n <= to; n++ {
			log.Info(fmt.Sprint(n))
		}
	}
	check := func(after uint64, limit, size int, want string, wantOmitted, wantLast uint64) {
		t.Helper()
		lines, omitted, last := tail.After(after, limit, size)
		if got := strings.ReplaceAll(texts(lines), "INFO ", ""); got != want || omitted != wantOmitted || last != wantLast {
			t.Errorf("after %d, limit %d: got %q, %d omitted, last %d; want %q, %d, %d", after, limit, got, omitted, last, want, wantOmitted, wantLast)
		}
	}
	check(0, 5, ample, "", 0, 0)
	add(1, 4)
	check(0, 5, ample, "1; 2; 3; 4", 0, 4)
	check(0, 2, ample, "3; 4", 2, 4)
	check(3, 2, ample, "4", 0, 4)
	check(4, 2, ample, "", 0, 4)
	check(2, 5, 10, "", 2, 4)
	add(5, Size+3)
	check(Size, 5, ample, fmt.Sprintf("%d; %d; %d", Size+1, Size+2, Size+3), 0, Size+3)
	lines, omitted, _ := tail.After(0, 2*Size, ample)
	if len(lines) != Size || lines[0].Text != "4" || omitted != 3 {
		t.Errorf("got %d lines from %q, %d omitted; want %d from 4, 3 omitted", len(lines), lines[0].Text, omitted, Size)
	}
	lines, _, _ = tail.After(0, Size, 1000)
	if _, err := protocol.Encode(protocol.DiagnosticsLog{Lines: lines}); err != nil || len(lines) < 5 || len(lines) > 20 {
		t.Errorf("got %d lines for 1000 bytes, error %v", len(lines), err)
	}
}

func TestTailIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	tail := new(Tail)
	log := slog.New(tail.Handler(slog.DiscardHandler))
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				log.With("a", 1).Info("x", "b", 2)
				tail.After(0, 10, ample)
			}
		})
	}
	writers.Wait()
	if lines, _, last := tail.After(799, 1, ample); last != 800 || texts(lines) != "INFO x a=1 b=2" {
		t.Errorf("got %q, last %d; want 800 lines", texts(lines), last)
	}
}
