//go:build hw

package hwtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// TestTypingError makes mistakes in the settings of a branch whose agent has worked before, and restarts the agent after each.
// Every door still opens, also one whose own section is wrong, and the status names the mistake.
func TestTypingError(t *testing.T) {
	state := t.TempDir()
	t.Setenv("STATE_DIRECTORY", state)
	b := brokertest.Start(t, "127.0.0.1:0")
	good := fmt.Sprintf(settings, b.Addr) + "\n[[sensor]]\nlocation = \"hall\"\nkind = \"sht4x\"\nbus = \"1\"\n"
	n := 40
	works := func(p *process) {
		t.Helper()
		for door, line := range map[string]int{"front_1": gpioHigh, "front_2": gpioLow} {
			n++
			idle := level(t, line)
			r, _ := unlock(t, b, n, protocol.MinPulse, door)
			if r.Outcome != protocol.Opened || level(t, line) == idle {
				t.Errorf("%s: got %+v and level %d, want the line to be driven", door, r, level(t, line))
			}
			await(t, "the end of the pulse", 10*time.Second, func() bool { return level(t, line) == idle })
		}
		p.end(syscall.SIGTERM)
	}
	p := startProgram(t, b, "/bin/yeolda-agent", good)
	await(t, "the copy of settings that work", 20*time.Second, func() bool {
		_, err := os.Stat(filepath.Join(state, "settings.toml"))
		return err == nil
	})
	works(p)
	for _, mistake := range []struct{ name, old, new, section string }{
		{"a sensor of an unknown kind", `kind = "sht4x"`, `kind = "sht45"`, "settings sensor"},
		{"a misspelled setting of a sensor", `bus = "1"`, `buss = "1"`, "settings sensor hall"},
		{"a misspelled setting of a door", `relay = { line = "GPIO17" }`, `realy = { line = "GPIO17" }`, "settings door front_1"},
		{"two doors on one line", `relay = { line = "GPIO4", active_low = true }`, `relay = { line = "GPIO17" }`, "settings door front_2"},
		{"an unknown top-level section", "[[sensor]]", "[[sensors]]", "settings unknown setting"},
		{"a missing quotation mark", `device = "front_1"`, `device = "front_1`, "settings"},
	} {
		if !strings.Contains(good, mistake.old) {
			t.Fatalf("%s: the settings do not contain %s", mistake.name, mistake.old)
		}
		t.Log(mistake.name)
		p = startProgram(t, b, "/bin/yeolda-agent", strings.Replace(good, mistake.old, mistake.new, 1))
		if !reports(p.status, mistake.section) {
			t.Errorf("%s: no self-test %q in %+v", mistake.name, mistake.section, p.status.SelfTest)
		}
		works(p)
	}
}

// reports reports whether a self-test whose name begins so has failed.
func reports(s protocol.Status, name string) bool {
	for _, test := range s.SelfTest {
		if !test.OK && strings.HasPrefix(test.Name, name) {
			return true
		}
	}
	return false
}
