package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
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

	"github.com/yeolda/yeolda/firmware-sim/internal/stack"
)

// TestFleet measures a service with YEOLDA_TEST_FLEET agents: how long until all are online, what one costs, how fast
// doors open at 50 a second, and how long a storm of reconnections lasts. It judges nothing but that it all comes true:
// figures depend on the machine and on what else runs there. The agents share the machine with the service.
func TestFleet(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("YEOLDA_TEST_FLEET"))
	if n == 0 {
		t.Skip("set YEOLDA_TEST_FLEET to the number of agents")
	}
	dir := dataDir(t)
	branches := filepath.Join(dir, "fleet.yaml")
	fleet := []string{"fleet", "--agents", strconv.Itoa(n)}
	if out, err := exec.Command(filepath.Join(bin, stack.Simulator), append(fleet, "--write-branches", branches)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s, err := stack.Start(ctx, stack.Options{Root: root(), Bin: bin, Dir: dir, Log: fleetLog(t), Branches: []string{branches, filepath.Join(root(), "deploy/demo/branches.yaml")},
		Env: map[string]string{"YEOLDA_RATE_LIMITS": "off", "YEOLDA_LOG_LEVEL": "warn"}, SimArgs: []string{"fleet", "--agents", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	if err := s.Signal(stack.Simulator, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	empty := resident(t, s.PID(stack.Service))

	began := time.Now()
	if err := s.Run(ctx, stack.Simulator, append(fleet, "--start-every", "1ms")...); err != nil {
		t.Fatal(err)
	}
	sessions(t, s, n)
	t.Logf("%d agents online after %s", n, time.Since(began).Round(10*time.Millisecond))
	full := resident(t, s.PID(stack.Service))
	t.Logf("the service takes %d MiB, %.1f KiB for an agent", full>>10, float64(full-empty)/float64(n))

	took, failed := unlockAt(t, s, n, 50, 20*time.Second)
	t.Logf("50 unlocks a second: %d, p50 %s, p99 %s, slowest %s, not opened %d", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1], failed)

	if err := s.Signal(stack.Service, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if err := s.Run(ctx, stack.Service, "serve"); err != nil {
		t.Fatal(err)
	}
	up := time.Since(began)
	sessions(t, s, n)
	t.Logf("after kill -9: the service listens after %s, all are back after %s", up.Round(time.Millisecond), time.Since(began).Round(10*time.Millisecond))
}

// resident is the resident memory of a process in KiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc")
	}
	kib, err := strconv.Atoi(regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(string(status))[1])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

// sessions waits until so many agents are connected.
func sessions(t *testing.T, s *stack.Stack, n int) {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)^yeolda_mqtt_sessions (\S+)$`)
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		have := 0.0
		if found := pattern.FindStringSubmatch(body(t, s.MetricsAt+"/metrics")); found != nil {
			have, _ = strconv.ParseFloat(found[1], 64)
		}
		if int(have) >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v agents of %d", have, n)
		}
	}
}

// unlockAt opens front doors all over the fleet at a steady rate and returns, sorted, how long each took from the press to
// its result.
func unlockAt(t *testing.T, s *stack.Stack, branches, rate int, length time.Duration) (took []time.Duration, failed int) {
	t.Helper()
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	var mu sync.Mutex
	var presses sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := range rate * int(length/time.Second) {
		<-tick.C
		presses.Go(func() {
			began := time.Now()
			ok := pressAs(t.Context(), hq, fmt.Sprintf("load-%04d", 1+n*7%branches))
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			if !ok {
				failed++
			}
		})
	}
	presses.Wait()
	slices.Sort(took)
	return took, failed
}

func pressAs(ctx context.Context, staff *browser, branch string) bool {
	got, err := send(ctx, staff.http, http.MethodPost, staff.api+"/admin/door/v2/unlock/"+branch+"/front", nil)
	if err != nil || got.status != http.StatusOK {
		return false
	}
	_, id, _ := strings.Cut(string(got.data), `"requestId":"`)
	id, _, _ = strings.Cut(id, `"`)
	got, err = send(ctx, staff.http, http.MethodGet, staff.api+"/admin/door/v2/unlock/subscribe?requestId="+id, nil)
	return err == nil && strings.Contains(got.body, `"SUCCESS"`)
}

// fleetLog is a file, where YEOLDA_TEST_FLEET_LOG names one.
func fleetLog(t *testing.T) io.Writer {
	t.Helper()
	name := os.Getenv("YEOLDA_TEST_FLEET_LOG")
	if name == "" {
		return io.Discard
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
