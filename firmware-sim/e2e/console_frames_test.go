package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// frameWork is the limit of the page's processor time per frame, in milliseconds. It is well below a frame's 20 ms, so that
// slower machines reach the rate too.
const frameWork = 8

// TestConsoleFrames scrolls and drags the timeline of a full day with forty rooms. According to Chromium's trace, the rate
// must be at least 50 frames a second, and the processor time must be below frameWork.
func TestConsoleFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	s := startStack(t, nil)
	if _, err := s.Command(t.Context(), "branch", "apply", "-f", fortyRooms(t)); err != nil {
		t.Fatal(err)
	}
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	date, midnight := dayAfter()
	made := 0
	for room := 1; room <= 40; room++ {
		for hour := 0; hour < 23; hour += 4 {
			start := midnight.Add(time.Duration(hour) * time.Hour)
			hq.must("POST", "/admin/reservation", map[string]any{"branch": "forty", "room": room, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(3 * time.Hour))}, nil)
			hq.must("POST", "/admin/payment", map[string]any{"name": fmt.Sprintf("손님 %d", made)}, nil)
			made++
		}
	}
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/forty/day/" + date)
	p.wait("all blocks", fmt.Sprintf(`document.querySelectorAll(".block").length === %d`, made))

	measure := func(what string, act func()) {
		t.Helper()
		f := framesOf(p.trace(act))
		t.Logf("%s: %s", what, f)
		if f.count < 60 {
			t.Fatalf("%s: only %d frames", what, f.count)
		}
		if f.busy > frameWork {
			t.Errorf("%s: a frame takes the main thread %.1f ms of processor time, want at most %d", what, f.busy, frameWork)
		}
		switch load := machineLoad(); {
		case f.rate >= 50:
		case load > float64(runtime.NumCPU()):
			t.Logf("%s: the rate is not judged, the machine is busy with other things (load %.1f on %d processors)", what, load, runtime.NumCPU())
		default:
			t.Errorf("%s: %.1f frames/s, want 50", what, f.rate)
		}
	}
	measure("scrolling", func() {
		value[bool](p, `new Promise(done => { const g = document.querySelector(".grid"); let n = 0;
			const step = () => { g.scrollTop = Math.abs(Math.sin(n / 40)) * g.scrollHeight; g.scrollLeft = Math.abs(Math.sin(n / 60)) * g.scrollWidth; if (++n < 180) requestAnimationFrame(step); else done(true) };
			step() })`)
	})
	measure("dragging", func() {
		// The drag makes one move per frame. It uses events in the page, because the measurement would include the protocol's
		// own input events.
		value[bool](p, `new Promise(done => { const g = document.querySelector(".grid"); g.scrollTop = 0; g.scrollLeft = 0;
			const block = document.querySelector(".block"), r = block.getBoundingClientRect(), lanes = document.querySelector(".lanes");
			lanes.setPointerCapture = () => {}; lanes.hasPointerCapture = () => false;
			const fire = (kind, x, y) => block.dispatchEvent(new PointerEvent(kind, {bubbles: true, pointerId: 1, pointerType: "mouse", button: 0, clientX: x, clientY: y}));
			fire("pointerdown", r.x + 20, r.y + 20); let n = 0;
			const step = () => { fire("pointermove", r.x + 200 + 180 * Math.sin(n / 12), r.y + 160 + 140 * Math.cos(n / 15)); if (++n < 180) requestAnimationFrame(step); else { document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"})); done(true) } };
			step() })`)
	})
}

// machineLoad returns the load average of the last minute, or 0 if the system does not provide it.
func machineLoad() (load float64) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &load)
	}
	return load
}

// fortyRooms writes a branch file with one large branch and returns its path.
func fortyRooms(t *testing.T) string {
	t.Helper()
	var file strings.Builder
	file.WriteString("demo: true\nbranches:\n  - code: forty\n    name: {ko: 마흔 개의 방, en: Forty rooms}\n    frontPin: \"730199\"\n    rooms:\n")
	for no := 1; no <= 40; no++ {
		fmt.Fprintf(&file, "      - {no: %d, machine: 온열 베드 %d, grade: Gold, price: {min10: 3000, min30: 8000, min60: 15000}, pin: \"49%04d\"}\n", no, no, no)
	}
	name := filepath.Join(t.TempDir(), "forty.yaml")
	if err := os.WriteFile(name, []byte(file.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
