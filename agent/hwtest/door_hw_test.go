//go:build hw

package hwtest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warthog618/go-gpiocdev"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// TestNoGlitch checks that neither start nor stop moves a line of either polarity: the idle level is set before the
// line becomes an output.
func TestNoGlitch(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	record(t)
	p := start(t, b)
	for line, idleLevel := range map[int]string{gpioHigh: "0", gpioLow: "1", gpioSensed: "0"} {
		list := changes(t, line)
		if len(list) < 2 || list[0].what != "set "+idleLevel || list[1].what != "out" {
			t.Errorf("line %d: %s", line, words(list))
		}
	}
	p.end(syscall.SIGTERM)
	if !p.ProcessState.Success() {
		t.Errorf("ended with %v", p.ProcessState)
	}
	for line, idleLevel := range map[int]string{gpioHigh: "0", gpioLow: "1", gpioSensed: "0"} {
		for _, c := range changes(t, line) {
			if c.what != "set "+idleLevel && c.what != "out" {
				t.Errorf("line %d: %s", line, words(changes(t, line)))
			}
		}
	}
	for _, test := range p.status.SelfTest {
		if !test.OK && !strings.HasPrefix(test.Name, "machine ") {
			t.Errorf("self-test %+v", test)
		}
	}
}

// TestPulse measures pulses with the kernel's clock, and checks that reading the line back does not disturb them.
func TestPulse(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	start(t, b)
	for n, tt := range []struct {
		door               string
		line               int
		energised, at_rest string
	}{{"front_1", gpioHigh, "set 1", "set 0"}, {"front_2", gpioLow, "set 0", "set 1"}} {
		record(t)
		const pulse = 700 * time.Millisecond
		r, _ := unlock(t, b, 10+n, pulse, tt.door)
		if r.Outcome != protocol.Opened {
			t.Fatalf("%s: %+v", tt.door, r)
		}
		if got := "set " + strconv.Itoa(level(t, tt.line)); got != tt.energised {
			t.Errorf("%s: result opened while the line was at %q", tt.door, got)
		}
		for e := (protocol.Event{}); e.Kind != protocol.EventReleased; {
			for _, e = range brokertest.Await[protocol.Telemetry](b).Events {
				t.Logf("%+v", e)
			}
		}
		list := pulseChanges(t, tt.line, tt.energised)
		if len(list) < 2 || list[1].what != tt.at_rest {
			t.Fatalf("%s: %s", tt.door, words(list))
		}
		for _, c := range list[2:] { // the idle level may be set twice
			if c.what != tt.at_rest {
				t.Errorf("%s: %s", tt.door, words(list))
			}
		}
		took := list[1].at - list[0].at
		t.Logf("%s: energised for %v of %v", tt.door, took, pulse)
		if !lasted(took, pulse) {
			t.Errorf("%s: energised for %v, want %v", tt.door, took, pulse)
		}
	}
}

// lasted reports whether a line was energised for the length of a pulse. The kernel's trace stamps the end of a pulse up to a few
// milliseconds earlier than the agent, and an emulated machine may be late.
func lasted(took, pulse time.Duration) bool {
	return took >= pulse-10*time.Millisecond && took <= pulse+300*time.Millisecond
}

// TestSense checks that the sense line decides about the result, not the relay.
func TestSense(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	start(t, b)
	if r, _ := unlock(t, b, 20, time.Second, "room_1"); r.Outcome != protocol.Failed || level(t, gpioSensed) != 0 {
		t.Errorf("a lock that did not move: %+v, line at %d", r, level(t, gpioSensed))
	}
	pull(t, gpioSense, 1)
	t.Cleanup(func() { pull(t, gpioSense, 0) })
	time.Sleep(50 * time.Millisecond) // the debounce period
	if r, _ := unlock(t, b, 21, time.Second, "room_1"); r.Outcome != protocol.Opened {
		t.Errorf("a lock that moved: %+v", r)
	}
}

// TestKill kills the process while the lock is open. The kernel releases the line, the restarted agent does not touch
// it, and the old grant is void.
func TestKill(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	p := start(t, b)
	r, g := unlock(t, b, 30, 10*time.Second, "front_1")
	if r.Outcome != protocol.Opened || level(t, gpioHigh) != 1 {
		t.Fatalf("%+v, line at %d", r, level(t, gpioHigh))
	}
	p.end(syscall.SIGKILL)
	if level(t, gpioHigh) != 0 {
		t.Error("the line is still driven")
	}
	for range 3 {
		record(t)
		p := start(t, b)
		b.Send(branch, g)
		if r := brokertest.Await[protocol.Result](b); r.Outcome != protocol.Unknown {
			t.Errorf("the old grant: got %+v, want unknown", r)
		}
		if got := words(changes(t, gpioHigh)); strings.Contains(got, "set 1") || strings.Contains(got, "in") {
			t.Errorf("restarted: %s", got)
		}
		p.end(syscall.SIGKILL)
	}
}

// TestBusyLine occupies a relay line with another program: only its door fails, the self-test reports it, and the door
// works when the line is free again.
func TestBusyLine(t *testing.T) {
	held, err := gpiocdev.RequestLine(chip.ChipName(), gpioBusy, gpiocdev.AsOutput(0), gpiocdev.WithConsumer("somebody"))
	if err != nil {
		t.Fatal(err)
	}
	b := brokertest.Start(t, "127.0.0.1:0")
	p := start(t, b)
	reported := false
	for _, test := range p.status.SelfTest {
		if test.Name == "relay room_2" && !test.OK && strings.Contains(test.Detail, "another program") {
			reported = true
		} else if !test.OK && !strings.HasPrefix(test.Name, "machine ") {
			t.Errorf("self-test %+v", test)
		}
	}
	if !reported {
		t.Errorf("not reported: %+v", p.status.SelfTest)
	}
	if r, _ := unlock(t, b, 40, time.Second, "room_2"); r.Outcome != protocol.Failed {
		t.Errorf("%+v", r)
	}
	if r, _ := unlock(t, b, 41, time.Second, "front_1"); r.Outcome != protocol.Opened {
		t.Errorf("%+v", r)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // the agent retries an unavailable line after a second
	if r, _ := unlock(t, b, 42, time.Second, "room_2"); r.Outcome != protocol.Opened {
		t.Errorf("%+v", r)
	}
}

// TestInputs checks that the kernel debounces a contact.
func TestInputs(t *testing.T) {
	pull(t, gpioExit, 1)
	b := brokertest.Start(t, "127.0.0.1:0")
	start(t, b)
	time.Sleep(200 * time.Millisecond)
	for _, value := range []int{1, 0, 1, 0, 1} {
		pull(t, gpioContact, value)
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	pull(t, gpioExit, 0)
	time.Sleep(300 * time.Millisecond)
	pull(t, gpioExit, 1)
	pull(t, gpioContact, 0)
	var got []protocol.EventKind
	for len(got) < 3 {
		for _, e := range brokertest.Await[protocol.Telemetry](b).Events {
			got = append(got, e.Kind)
		}
	}
	want := []protocol.EventKind{protocol.EventDoorOpened, protocol.EventExitPressed, protocol.EventDoorClosed}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("events %v, want %v", got, want)
		}
	}
}

// TestAtRest measures the idle agent. An emulated processor is ten times slower than a Pi's.
func TestAtRest(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	p := start(t, b)
	time.Sleep(time.Second) // wait for the end of the start
	before := ticks(t, p.Process.Pid)
	const wait = 5 * time.Second
	time.Sleep(wait)
	used := time.Duration(ticks(t, p.Process.Pid)-before) * 10 * time.Millisecond // USER_HZ is 100
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.Process.Pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB, %.1f %% of this machine's processor", float64(kilobytes)/1024, 100*used.Seconds()/wait.Seconds())
	if kilobytes > 20*1024 {
		t.Errorf("%d kB of memory, want under 20 MB", kilobytes)
	}
}

// ticks returns the processor time of a process so far (proc(5), utime and stime).
func ticks(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat)[strings.LastIndexByte(string(stat), ')')+1:])
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		t.Fatal(err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		t.Fatal(err)
	}
	return user + system
}
