package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHTTP2 runs h2spec (its path is in H2SPEC) against the service behind the deployment's proxy with a self-signed
// certificate.
func TestHTTP2(t *testing.T) {
	h2spec := os.Getenv("H2SPEC")
	if h2spec == "" {
		t.Skip("H2SPEC names no h2spec; make conformance does")
	}
	caddy, err := exec.LookPath("caddy")
	if err != nil {
		t.Skip("caddy is not installed")
	}
	s := startStack(t, nil)
	port := freePorts(t, 1)[0]
	raw, err := os.ReadFile(filepath.Join(root(), "deploy/caddy/Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	// The configuration is the deployed one except for the certificate, the ports and the health check.
	config := "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n" +
		strings.NewReplacer("health_port 9090", "health_port "+s.MetricsAt[strings.LastIndex(s.MetricsAt, ":")+1:]).Replace(string(raw))
	config = strings.Replace(config, "{$YEOLDA_DOMAIN} {", "https://127.0.0.1:"+port+" {\n\ttls internal", 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := exec.Command(caddy, "run", "--config", file, "--adapter", "caddyfile")
	proxy.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "YEOLDA_REPLICAS="+strings.TrimPrefix(s.Pages, "http://"))
	proxy.Stdout, proxy.Stderr = t.Output(), t.Output()
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = proxy.Process.Signal(syscall.SIGTERM)
		_ = proxy.Wait()
	})
	until(t, "the proxy passes requests on", func() bool {
		out, _ := exec.Command("curl", "-sk", "-o", "/dev/null", "-w", "%{http_code} %{http_version}", "https://127.0.0.1:"+port+"/api/v2/branches").Output()
		return string(out) == "200 2"
	})
	out, _ := exec.Command(h2spec, "-t", "-k", "-h", "127.0.0.1", "-p", port, "-o", "5").CombinedOutput() // its exit code is not 0 if any case fails
	report := string(out)
	found := regexp.MustCompile(`(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed`).FindStringSubmatch(report)
	if found == nil {
		t.Fatal(report)
	}
	t.Logf("h2spec: %s", found[0])
	var failed int
	_, _ = fmt.Sscan(found[4], &failed)
	if failed > 4 { // known deviations of Go's HTTP/2 server, unchanged for years
		_, failures, _ := strings.Cut(report, "Failures:")
		t.Errorf("more than Go's own four fail:\n%s", failures)
	}
}

// TestEventSource waits for a door with a browser's EventSource. The source receives the result once, reconnects as the
// standard requires, and is then closed by the answer. If there is no result within the limit, it stops.
func TestEventSource(t *testing.T) {
	t.Parallel()
	s := startStack(t, map[string]string{"YEOLDA_DOOR_RESULT_TIMEOUT": "3s"})
	guest := newBrowser(t, s)
	key := guest.buy(s, "gangnam", 2, 25000, "01011112222")
	p := newPage(t, s.Pages)
	p.expect("subscribe") // the answer that closes the source
	p.open(s.Pages + "/")
	const watch = `(async function(key, times) {
		const asked = await fetch('/api/door/v2/unlock', {method: 'POST', headers: {'Content-Type': 'application/json'},
			body: JSON.stringify({branch: 'gangnam', doorlockType: 'room', key})});
		const id = (await asked.json()).data.requestId;
		const source = new EventSource('/api/door/v2/unlock/subscribe?requestId=' + id + '&key=' + key);
		const seen = [];
		source.addEventListener('door-result', e => seen.push(JSON.parse(e.data).status));
		await new Promise(done => {
			const look = setInterval(() => { if (source.readyState === 2) { clearInterval(look); done(); } }, 50);
			setTimeout(() => { clearInterval(look); done(); }, 12000);
		});
		return seen.join() + ' ' + source.readyState;
	})`
	if got := value[string](p, watch+`(`+quoted(key)+`)`); got != "SUCCESS 2" {
		t.Errorf("a door that opens: %q, want one result and a closed source", got)
	}
	// Ask and claim take two seconds, and grant and report two more, which exceeds the limit of a request.
	requestJSON(t, "PUT", s.SimAt+"/sim/branches/gangnam/faults", map[string]any{"kind": "network-lag", "delayMs": 1000}, nil)
	began := time.Now()
	got := value[string](p, watch+`(`+quoted(key)+`)`)
	t.Logf("a branch that is far away: %q after %s", got, time.Since(began).Round(10*time.Millisecond))
	if !strings.HasSuffix(got, " 2") {
		t.Errorf("the source is still open: %q", got)
	}
	if strings.Count(got, "SUCCESS") > 1 {
		t.Errorf("the result came more than once: %q", got)
	}
}

// TestEventSourceOfNode runs the same check with the client for Node (npm eventsource). NODE_EVENTSOURCE names the directory
// in which the client is installed.
func TestEventSourceOfNode(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("NODE_EVENTSOURCE")
	if dir == "" {
		t.Skip("NODE_EVENTSOURCE names no directory; make conformance does")
	}
	s := startStack(t, map[string]string{"YEOLDA_DOOR_RESULT_TIMEOUT": "3s"})
	guest := newBrowser(t, s)
	key := guest.buy(s, "gangnam", 2, 25000, "01011112222")
	watch := func() string {
		t.Helper()
		command := exec.Command("node", "--input-type=module", "-e", `
			import { EventSource } from 'eventsource';
			const [api, key] = process.argv.slice(1);
			const asked = await fetch(api + '/door/v2/unlock', {method: 'POST', headers: {'Content-Type': 'application/json'},
				body: JSON.stringify({branch: 'gangnam', doorlockType: 'room', key})});
			const source = new EventSource(api + '/door/v2/unlock/subscribe?requestId=' + (await asked.json()).data.requestId + '&key=' + key);
			const seen = [];
			source.addEventListener('door-result', e => seen.push(JSON.parse(e.data).status));
			for (const end = Date.now() + 12000; source.readyState !== 2 && Date.now() < end; ) await new Promise(r => setTimeout(r, 50));
			console.log(seen.join() + ' ' + source.readyState);
			process.exit(0);`, s.API, key)
		command.Dir = dir
		var problems strings.Builder
		command.Stderr = &problems
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, problems.String())
		}
		return strings.TrimSuffix(string(out), "\n")
	}
	if got := watch(); got != "SUCCESS 2" {
		t.Errorf("a door that opens: %q, want one result and a closed source", got)
	}
	requestJSON(t, "PUT", s.SimAt+"/sim/branches/gangnam/faults", map[string]any{"kind": "network-lag", "delayMs": 1000}, nil)
	if got := watch(); !strings.HasSuffix(got, " 2") || strings.Count(got, "SUCCESS") > 1 {
		t.Errorf("a branch that is far away: %q", got)
	}
}
