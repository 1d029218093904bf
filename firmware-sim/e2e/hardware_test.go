//go:build hw

package e2e

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// The demo's offline branch runs a real agent on a real kernel in a virtual machine; see agent/hwtest.
const machineSettings = `
[[door]]
device = "front_1"
relay = { line = "GPIO17" }

[[door]]
device = "room_1"
relay = { line = "GPIO4", active_low = true }
`

// machineRun is the machine's program: it prints all changes of two lines, and runs the agent.
const machineRun = `#!/bin/sh
sim=/sys/kernel/config/gpio-sim/branch
mkdir $sim $sim/bank0 $sim/bank0/line17 $sim/bank0/line4
echo pinctrl-sim >$sim/bank0/label
echo 28 >$sim/bank0/num_lines
echo GPIO17 >$sim/bank0/line17/name
echo GPIO4 >$sim/bank0/line4/name
echo 1 >$sim/live
for pull in /sys/devices/platform/gpio-sim.0/gpiochip*/sim_gpio4/pull; do echo pull-up >$pull; done
for chip in /sys/class/gpio/gpiochip*; do echo "first line $(cat $chip/base)"; done
echo 1 >/sys/kernel/tracing/events/gpio/enable
cat /sys/kernel/tracing/trace_pipe &
yeolda-agent enroll --server http://HOST --file /etc/credentials TOKEN || exit 1
exec yeolda-agent run --settings /etc/settings.toml --credentials /etc/credentials
`

// machine is the virtual machine and its console output so far.
type machine struct {
	mu    sync.Mutex
	lines []string
}

func startMachine(t *testing.T, s *world.Stack, branch string) *machine {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"bin", "etc"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "bin"), "./agent/cmd/yeolda-agent")
	build.Dir, build.Env = root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	address, err := url.Parse(s.Pages)
	if err != nil {
		t.Fatal(err)
	}
	command, err := s.Command(t.Context(), "agent", "enroll", branch)
	if err != nil {
		t.Fatal(err)
	}
	token := offered.FindStringSubmatch(command)
	if token == nil {
		t.Fatalf("no token in %q", command)
	}
	run := strings.NewReplacer("HOST", "10.0.2.2:"+address.Port(), "TOKEN", token[1]).Replace(machineRun)
	for name, text := range map[string]string{"run": run, "etc/settings.toml": machineSettings} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kernel := os.Getenv("HWTEST_KERNEL")
	if kernel == "" {
		t.Fatal("HWTEST_KERNEL is not set; run make hwtest")
	}
	boot := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(root(), "agent/hwtest/boot.sh"), kernel, dir)
	boot.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	console, err := boot.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := boot.Start(); err != nil {
		t.Fatal(err)
	}
	m := &machine{}
	read := make(chan struct{})
	go func() { defer close(read); m.listen(console, t.Output()) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-boot.Process.Pid, syscall.SIGTERM) // the machine does not stop automatically
		<-read
		_ = boot.Wait()
	})
	return m
}

func (m *machine) listen(console io.Reader, log io.Writer) {
	for lines := bufio.NewScanner(console); lines.Scan(); {
		_, _ = io.WriteString(log, lines.Text()+"\n")
		m.mu.Lock()
		m.lines = append(m.lines, lines.Text())
		m.mu.Unlock()
	}
}

// await waits for a line on the console and returns it; the boot time of an emulated machine depends on the host's load.
func (m *machine) await(t *testing.T, what string) string {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		m.mu.Lock()
		found := slices.IndexFunc(m.lines, func(line string) bool { return strings.Contains(line, what) })
		if found >= 0 {
			defer m.mu.Unlock()
			return m.lines[found]
		}
		m.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("the machine does not say %q within 90 s", what)
		}
	}
}

var (
	enrolled  = regexp.MustCompile(`this machine is now (\S+),`)
	offered   = regexp.MustCompile(`sh -s -- (\S+)`)
	firstLine = regexp.MustCompile(`first line (\d+)$`)
	driven    = regexp.MustCompile(`gpio_value: (\d+) set (\d)`)
)

// levels returns the levels that the kernel has driven, as "17=1".
func (m *machine) levels(t *testing.T) []string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	base := 0
	var levels []string
	for _, line := range m.lines {
		if found := firstLine.FindStringSubmatch(line); found != nil {
			base = number(t, found[1])
		}
		if found := driven.FindStringSubmatch(line); found != nil {
			levels = append(levels, strconv.Itoa(number(t, found[1])-base)+"="+found[2])
		}
	}
	return levels
}

// TestWholeWay unlocks a door as a guest and checks the GPIO lines of a Linux kernel, through API, broker and agent.
func TestWholeWay(t *testing.T) {
	s := startStack(t, nil)
	m := startMachine(t, s, "jamsil")
	guest := newBrowser(t, s)
	key := guest.buy(s, "jamsil", 1, 15000, "01033334444")

	username := enrolled.FindStringSubmatch(m.await(t, "this machine is now "))[1]
	until(t, "the service lists the agent as online", func() bool { return onlineInList(t, s, username) })
	// The machine has two doors of the branch, not all, so it does not become the active agent automatically.
	if _, err := s.Command(t.Context(), "agent", "activate", username); err != nil {
		t.Fatal(err)
	}
	if got, status := guest.open("jamsil", "room", key); status != http.StatusOK || got.Status != "SUCCESS" || *got.Device != "room_1" {
		t.Errorf("%d %+v", status, got)
	}
	if got, status := guest.open("jamsil", "front", key); status != http.StatusOK || got.Status != "SUCCESS" {
		t.Errorf("%d %+v", status, got)
	}
	// The lines are idle when the agent starts. Then each door has one pulse, inverted for the door that is active low.
	count := func(level string) int {
		return len(slices.DeleteFunc(m.levels(t), func(l string) bool { return l != level }))
	}
	until(t, "both pulses end", func() bool { return count("4=1") >= 2 && count("17=0") >= 2 })
	if count("4=0") != 1 || count("17=1") != 1 {
		t.Errorf("the kernel drove %v", m.levels(t))
	}
	for _, line := range []string{"4=", "17="} {
		if own := slices.DeleteFunc(m.levels(t), func(l string) bool { return !strings.HasPrefix(l, line) }); own[0] == "4=0" || own[0] == "17=1" {
			t.Errorf("not idle at first: %v", own)
		}
	}
}

func number(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
