package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
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

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// TestFleet measures a service with YEOLDA_TEST_FLEET agents: the time until all are online, the cost of one, the
// latency of doors at 50 a second, and the length of a burst of reconnections. It asserts only that all of this
// completes, because figures depend on the machine. The agents share the machine with the service. With
// YEOLDA_TEST_FLEET_TLS=1 they use TLS.
func TestFleet(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("YEOLDA_TEST_FLEET"))
	if n == 0 {
		t.Skip("set YEOLDA_TEST_FLEET to the number of agents")
	}
	dir := dataDir(t)
	branches := filepath.Join(dir, "fleet.yaml")
	fleet := []string{"fleet", "--agents", strconv.Itoa(n)}
	if out, err := exec.Command(filepath.Join(bin, world.Simulator), append(fleet, "--write-branches", branches)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	env := map[string]string{"YEOLDA_RATE_LIMITS": "off", "YEOLDA_LOG_LEVEL": "warn"}
	if os.Getenv("YEOLDA_TEST_FLEET_TLS") != "" {
		certificate, key := certify(t, dir)
		env["YEOLDA_MQTT_TLS_ADDR"] = "127.0.0.1:" + freePorts(t, 1)[0]
		env["YEOLDA_TLS_CERT"], env["YEOLDA_TLS_KEY"], env["SSL_CERT_FILE"] = certificate, key, certificate
		fleet = append(fleet, "--broker-url", "mqtts://"+env["YEOLDA_MQTT_TLS_ADDR"])
	}
	s, err := world.StartStack(ctx, world.StackOptions{Root: root(), Bin: bin, Dir: dir, Template: template, Log: fleetLog(t), Branches: []string{branches, filepath.Join(root(), "deploy/demo/branches.yaml")},
		Env: env, SimArgs: []string{"fleet", "--agents", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	if err := s.Signal(world.Simulator, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	empty := resident(t, s.PID(world.Service))
	service, database := computed(t, s.PID(world.Service))

	began := time.Now()
	if err := s.Run(ctx, world.Simulator, append(fleet, "--start-every", "1ms")...); err != nil {
		t.Fatal(err)
	}
	sessions(t, s, n)
	t.Logf("%d agents online after %s", n, time.Since(began).Round(10*time.Millisecond))
	simulator, _ := computed(t, s.PID(world.Simulator))
	serviceNow, databaseNow := computed(t, s.PID(world.Service))
	t.Logf("computed for them: service %s, database %s, simulator %s", serviceNow-service, databaseNow-database, simulator)
	full := resident(t, s.PID(world.Service))
	t.Logf("the service takes %d MiB, %.1f KiB for an agent", full>>10, float64(full-empty)/float64(n))
	const rest = 20 * time.Second
	simulator, _ = computed(t, s.PID(world.Simulator))
	service, database = computed(t, s.PID(world.Service))
	time.Sleep(rest)
	serviceNow, databaseNow = computed(t, s.PID(world.Service))
	calm := resident(t, s.PID(world.Service))
	t.Logf("at rest the service takes %d MiB, %.1f KiB for an agent, and %.1f %% of a core; its database %.1f %%", calm>>10, float64(calm-empty)/float64(n),
		100*(serviceNow-service).Seconds()/rest.Seconds(), 100*(databaseNow-database).Seconds()/rest.Seconds())
	simulatorNow, _ := computed(t, s.PID(world.Simulator))
	t.Logf("at rest the simulator takes %d MiB and %.1f %% of a core", resident(t, s.PID(world.Simulator))>>10, 100*(simulatorNow-simulator).Seconds()/rest.Seconds())

	took, failed := unlockAt(t, s, n, 50, 20*time.Second)
	t.Logf("50 unlocks a second: %d, p50 %s, p99 %s, slowest %s, not opened %d", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1], len(failed))

	if err := s.Signal(world.Service, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if err := s.Run(ctx, world.Service, "serve"); err != nil {
		t.Fatal(err)
	}
	up := time.Since(began)
	sessions(t, s, n)
	t.Logf("after kill -9: the service listens after %s, all are back after %s", up.Round(time.Millisecond), time.Since(began).Round(10*time.Millisecond))
}

// certify writes a self-signed certificate for 127.0.0.1, and its key.
func certify(t *testing.T, dir string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "fleet.crt"), filepath.Join(dir, "fleet.key")
	for name, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// resident returns the resident memory of a process in KiB.
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

// computed returns the processor time of a process, and that of its descendants.
func computed(t *testing.T, pid int) (self, below time.Duration) {
	t.Helper()
	parents, times := make(map[int]int), make(map[int]time.Duration)
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the process has just ended
		}
		// The name of the program is in parentheses and may contain anything (proc_pid_stat(5)).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parents[id], _ = strconv.Atoi(fields[1])
		for _, ticks := range fields[11:15] { // user and kernel time of the process and of its ended children
			n, _ := strconv.Atoi(ticks)
			times[id] += time.Duration(n) * time.Second / 100
		}
	}
	for id := range times {
		for up := parents[id]; up > 1; up = parents[up] {
			if up == pid {
				below += times[id]
				break
			}
		}
	}
	return times[pid], below
}

// sessions waits until n agents are connected.
func sessions(t *testing.T, s *world.Stack, n int) {
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

// unlockAt opens front doors of the whole fleet at a steady rate and returns the sorted times from press to result.
func unlockAt(t *testing.T, s *world.Stack, branches, rate int, length time.Duration) (took []time.Duration, failed []refusal) {
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
			branch := fmt.Sprintf("load-%04d", 1+n*7%branches)
			reason := pressAs(t.Context(), hq, branch)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			if reason != "" {
				failed = append(failed, refusal{branch, reason, time.Since(began)})
			}
		})
	}
	presses.Wait()
	slices.Sort(took)
	return took, failed
}

// A refusal is a press that opened no door.
type refusal struct {
	branch, reason string
	after          time.Duration
}

// pressAs opens the front door of a branch, and returns the reason if it stays closed.
func pressAs(ctx context.Context, staff *browser, branch string) string {
	got, err := send(ctx, staff.http, staff.api, http.MethodPost, "/admin/door/v2/unlock/"+branch+"/front", nil)
	if err != nil {
		return err.Error()
	}
	if got.status != http.StatusOK {
		return got.body
	}
	_, id, _ := strings.Cut(string(got.data), `"requestId":"`)
	id, _, _ = strings.Cut(id, `"`)
	got, err = send(ctx, staff.http, staff.api, http.MethodGet, "/admin/door/v2/unlock/subscribe?requestId="+id, nil)
	if err != nil {
		return err.Error()
	}
	if !strings.Contains(got.body, `"SUCCESS"`) {
		return got.body
	}
	return ""
}

// fleetLog returns the file that YEOLDA_TEST_FLEET_LOG names.
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
