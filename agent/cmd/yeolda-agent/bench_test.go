package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// BenchmarkAtRest measures the program without door requests: an agent with eight doors, each with sense line, contact and exit
// button, connected to a broker. On a machine without GPIO the agent requests the missing lines repeatedly; TestAtRest in hwtest
// measures the same on a kernel that has them.
func BenchmarkAtRest(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "yeolda-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	broker := brokertest.Start(b, "127.0.0.1:0")
	settings := "broker = 'mqtt://" + broker.Addr + "'\n[[air_conditioner]]\nname = '로비'\ncodes = 'lg2'\ntransmitter = 'pwm-ir-tx'\n"
	for i := range 8 {
		settings += fmt.Sprintf("[[door]]\ndevice = 'room_%d'\nrelay = { line = 'GPIO%d' }\nsense = { line = 'A%d' }\ncontact = { line = 'B%d' }\nexit = { line = 'C%d' }\n", i+1, 9+i, i, i, i)
	}
	credentials := "YEOLDA_BRANCH=gangnam\nYEOLDA_AGENT_USERNAME=agent-gangnam\nYEOLDA_AGENT_PASSWORD=" + brokertest.Password +
		"\nYEOLDA_GRANT_PUBLIC_KEYS=" + base64.StdEncoding.EncodeToString(brokertest.PublicKeys()[0]) + "\n"
	for name, text := range map[string]string{"settings.toml": settings, "credentials": credentials} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	agent := exec.Command(program, "run", "--settings", filepath.Join(dir, "settings.toml"), "--credentials", filepath.Join(dir, "credentials"))
	if err := agent.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		_ = agent.Wait()
	}()
	for s := (protocol.Status{}); s.State != protocol.Online; {
		s = brokertest.Await[protocol.Status](broker)
	}
	time.Sleep(2 * time.Second) // without the start

	var used, passed time.Duration
	for b.Loop() {
		began, before := time.Now(), processor(b, agent.Process.Pid)
		time.Sleep(20 * time.Second)
		used, passed = used+processor(b, agent.Process.Pid)-before, passed+time.Since(began)
	}
	b.ReportMetric(float64(resident(b, agent.Process.Pid))/1024, "MB")
	b.ReportMetric(100*used.Seconds()/passed.Seconds(), "%core")
}

// processor returns the processor time of a process (proc(5): utime and stime, in units of 10 ms).
func processor(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("no /proc")
	}
	fields := strings.Fields(string(stat)[strings.LastIndexByte(string(stat), ')')+1:])
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// resident returns the resident memory of a process in KiB.
func resident(b *testing.B, pid int) int {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return kib
}
