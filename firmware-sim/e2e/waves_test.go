package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// TestWaves gives YEOLDA_TEST_WAVES agents first settings with which they do not reach the service, then a version with which a self-test
// fails. Each must stop at the first wave, of one percent, and every agent must return to what it had. Doors of the whole fleet are
// pressed in the meantime: none may stay closed but those of an agent that has lost the service with the bad settings.
func TestWaves(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("YEOLDA_TEST_WAVES"))
	if n == 0 {
		t.Skip("set YEOLDA_TEST_WAVES to the number of agents")
	}
	dir := dataDir(t)
	branches := filepath.Join(dir, "fleet.yaml")
	fleet := []string{"fleet", "--agents", strconv.Itoa(n)}
	if out, err := exec.Command(filepath.Join(bin, world.Simulator), append(fleet, "--write-branches", branches)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	s, err := world.StartStack(ctx, world.StackOptions{Root: root(), Bin: bin, Dir: dir, Template: template, Log: fleetLog(t), Branches: []string{branches, filepath.Join(root(), "deploy/demo/branches.yaml")},
		Env: map[string]string{"YEOLDA_RATE_LIMITS": "off", "YEOLDA_LOG_LEVEL": "warn"}, SimArgs: []string{"fleet", "--agents", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	if err := s.Signal(world.Simulator, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx, world.Simulator, append(fleet, "--settings", "--settings-trial", "12s")...); err != nil {
		t.Fatal(err)
	}
	sessions(t, s, n)
	await := func(what string, is func() bool) {
		t.Helper()
		for !is() {
			select {
			case <-ctx.Done():
				t.Fatalf("it never happens: %s", what)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	await("the settings of every agent are in the service", func() bool {
		found := regexp.MustCompile(`(?m)^yeolda_agent_settings\{state="in-use"\} (\d+)$`).FindStringSubmatch(body(t, s.MetricsAt+"/metrics"))
		return found != nil && found[1] == strconv.Itoa(n)
	})
	took, failed := unlockAt(t, s, n, 5, 10*time.Second)
	t.Logf("before: %d presses, p50 %s, slowest %s, %d not opened", len(took), took[len(took)/2], took[len(took)-1], len(failed))
	hq := staff(t, s)
	for _, c := range []struct {
		what string
		body map[string]any
	}{
		{"bad settings", map[string]any{"change": map[string]string{"old": "# broker", "new": `broker = "mqtt://nowhere.invalid:1883"`}, "settleSeconds": 20}},
		{"a bad version", map[string]any{"version": "2.1.0+broken", "settleSeconds": 20}},
	} {
		began := time.Now()
		hq.must("POST", "/v2/admin/agents/rollout", c.body, nil)
		pressed := make(chan []refusal, 1)
		go func() {
			took, failed := unlockAt(t, s, n, 5, 30*time.Second)
			t.Logf("%s: %d presses, p50 %s, slowest %s, %d not opened", c.what, len(took), took[len(took)/2], took[len(took)-1], len(failed))
			pressed <- failed
		}()
		var shown string
		await(c.what+" stop", func() bool {
			if shown, err = s.Command(ctx, "agent", "rollout"); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(shown, ": stopped, wave 1 of 3")
		})
		states, tried := map[string]int{}, map[string]bool{}
		for _, row := range regexp.MustCompile(`(?m)^agent-\S+\s+(\S+)\s+\d+\s+(\S+)`).FindAllStringSubmatch(shown, -1) {
			states[row[2]]++
			tried[row[1]] = row[2] != "waiting"
		}
		t.Logf("%s: stopped after %s, agents %v", c.what, time.Since(began).Round(time.Second), states)
		for _, f := range <-pressed {
			if !tried[f.branch] {
				t.Errorf("%s: the door of %s stayed closed for %s, want it open: its agent waits for its wave; %s", c.what, f.branch, f.after, f.reason)
			}
		}
		all := states["waiting"] + states["failed"] + states["reverted"]
		if first := (all + 99) / 100; all < n || states["waiting"] != all-first {
			t.Errorf("%s: agents %v, want %d failed or reverted and the others waiting", c.what, states, first)
		}
		sessions(t, s, n)
	}
	if found := regexp.MustCompile(`yeolda_agent_settings\{state="stuck"\} (\d+)`).FindStringSubmatch(body(t, s.MetricsAt+"/metrics")); found == nil || found[1] != "0" {
		t.Errorf("stuck settings: %v, want none", found)
	}
}
