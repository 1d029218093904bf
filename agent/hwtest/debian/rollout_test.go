//go:build debian

package debian

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// branchYAML is the branch of the machine.
const branchYAML = `
demo: true
branches:
  - code: gangnam
    name: {ko: 열다 강남점, en: Yeolda Gangnam}
    address: 서울특별시 강남구 가상대로 123
    phone: "02-0000-1001"
    frontDoors: [front_1]
    frontPin: "730154"
    rooms:
      - {no: 1, machine: A1, grade: Standard, price: {min10: 3000, min30: 8000, min60: 15000}, pin: "481901"}
administrators:
  - {id: hq, password: hq-demo, role: hq}
`

// TestRollout runs the service on the host and the package in the machine. Packages that were built and signed as a release are
// rolled out on the cloud's word: one that works stays, one that ends at once is rolled back by the machine and stops its rollout.
// The doors are pressed by the staff, before and after.
func TestRollout(t *testing.T) {
	m := emptyMachine(t)
	c := newCloud(m)
	key := filepath.Join(t.TempDir(), "release.key")
	m.write("release-keys", c.yeolda("agent", "release", "key", key))
	for _, name := range []string{m.build("1.0.0"), m.build("1.1.0"), m.derive("1.2.0", "#!/bin/sh\nexit 1\n")} {
		c.yeolda("agent", "release", "sign", "--key", key, m.path(name))
	}
	c.start()
	c.yeolda("agent", "enroll", branch, "--file", m.path("credentials"))
	m.image(c.mqtt)
	m.boot()
	c.await("the agent online and active", `active +yes `, "agent", "list")
	c.opens()

	c.yeolda("agent", "rollout", "1.1.0", "--settle", "90s")
	c.await("the rollout done", "version 1.1.0: done", "agent", "rollout")
	if got := c.yeolda("agent", "rollout"); !strings.Contains(got, "healthy") {
		t.Errorf("got %s", got)
	}
	if got := m.run("dpkg-query -W -f '${Version} ${Status}' yeolda-agent"); got != "1.1.0 install ok installed" {
		t.Errorf("got %q", got)
	}
	c.opens()

	c.yeolda("agent", "rollout", "1.2.0", "--settle", "90s")
	c.await("the rollout stopped", "version 1.2.0: stopped", "agent", "rollout")
	if got := c.yeolda("agent", "rollout"); !strings.Contains(got, "rolled-back: ") {
		t.Errorf("got %s", got)
	}
	if got := m.run("/usr/bin/yeolda-agent version"); got != "yeolda-agent 1.1.0" {
		t.Errorf("got %q", got)
	}
	c.opens()

	// A copy of the SD card cannot connect once the agent has made new secrets.
	const secrets = "/var/lib/yeolda-agent/secrets.json"
	username := m.run("mkdir /root/card && cp -a /etc/yeolda-agent /root/card/etc && cp -a /var/lib/yeolda-agent /root/card/var && sed -n s/^YEOLDA_AGENT_USERNAME=//p /etc/yeolda-agent/credentials")
	c.yeolda("agent", "credentials", "rotate", username)
	m.run("for i in $(seq 600); do [ ! -e " + secrets + " ] || cmp -s " + secrets + " /root/card/var/secrets.json || exit 0; sleep 0.2; done; exit 1")
	c.await("the agent with its new secrets", `active +yes .*key pair +[0-9]`, "agent", "list")
	c.opens()
	said := m.run("STATE_DIRECTORY=/root/card/var timeout 30 /usr/bin/yeolda-agent run --settings /etc/yeolda-agent/settings.toml --credentials /root/card/etc/credentials 2>&1 || true")
	if strings.Contains(said, "connected to the broker") || !strings.Contains(said, "reason 0x8") {
		t.Errorf("the copied card: %s", said)
	}
	c.opens()
}

// cloud is the service on the host, with a PostgreSQL of its own.
type cloud struct {
	m         *machine
	dir       string // of programs and data
	env       []string
	api, mqtt string
	client    http.Client
}

// newCloud compiles the programs.
func newCloud(m *machine) *cloud {
	m.t.Helper()
	dir, err := os.MkdirTemp("", "yeolda-debian-")
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // the private PostgreSQL runs as another user
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { os.RemoveAll(dir) })
	m.command("go", "build", "-o", dir+"/", "../../../cloud/cmd/yeolda", "../../../cloud/cmd/yeolda-sandbox")
	addresses := make([]string, 5)
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			m.t.Fatal(err)
		}
		defer l.Close()
		addresses[i] = l.Addr().String()
	}
	_, port, _ := net.SplitHostPort(m.packages.Listener.Addr().String())
	c := &cloud{m: m, dir: dir, api: "http://" + addresses[0] + "/api", mqtt: addresses[1]}
	c.env = append(os.Environ(), "YEOLDA_MODE=demo", "YEOLDA_HTTP_ADDR="+addresses[0], "YEOLDA_MQTT_ADDR="+addresses[1],
		"YEOLDA_SANDBOX_ADDR="+addresses[2], "YEOLDA_SANDBOX_SMTP_ADDR="+addresses[3], "YEOLDA_METRICS_ADDR="+addresses[4],
		"YEOLDA_DATA_DIR="+filepath.Join(dir, "data"), "YEOLDA_COOKIE_SECURE=false",
		// The address of the packages is the machine's; on the host, the server with the packages is a proxy for it.
		"YEOLDA_AGENT_PACKAGES=http://10.0.2.2:"+port, "HTTP_PROXY="+m.packages.URL, "NO_PROXY=localhost")
	c.client.Jar, _ = cookiejar.New(nil)
	return c
}

// start starts the service and logs in.
func (c *cloud) start() {
	c.m.t.Helper()
	file := filepath.Join(c.dir, "branches.yaml")
	if err := os.WriteFile(file, []byte(branchYAML), 0o644); err != nil { //nolint:gosec // see newCloud
		c.m.t.Fatal(err)
	}
	c.run("yeolda-sandbox")
	c.yeolda("branch", "apply", "-f", file)
	c.run("yeolda", "serve")
	c.call("POST", "/admin/login", `{"id": "hq", "password": "hq-demo"}`)
}

// run starts a program until the test ends, and waits until it is ready.
func (c *cloud) run(name string, args ...string) {
	c.m.t.Helper()
	ready := filepath.Join(c.dir, name+".ready")
	p := exec.Command(filepath.Join(c.dir, name), append(args, "--ready-file", ready)...)
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		c.m.t.Fatal(err)
	}
	defer log.Close()
	p.Env, p.Stdout, p.Stderr = c.env, log, log
	if err := p.Start(); err != nil {
		c.m.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	c.m.t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if text, _ := os.ReadFile(ready); len(text) > 0 {
			return
		}
		if time.Now().After(deadline) || len(ended) > 0 {
			text, _ := os.ReadFile(log.Name())
			c.m.t.Fatalf("%s is not ready:\n%s", name, text)
		}
	}
}

// yeolda runs a command of the service's program and returns its output.
func (c *cloud) yeolda(args ...string) string {
	c.m.t.Helper()
	command := exec.Command(filepath.Join(c.dir, "yeolda"), args...)
	var errors strings.Builder
	command.Env, command.Stderr = c.env, &errors
	out, err := command.Output()
	if err != nil {
		c.m.t.Fatalf("yeolda %v: %v\n%s%s", args, err, out, errors.String())
	}
	return string(out)
}

// await waits until the output of a command matches an expression.
func (c *cloud) await(what, pattern string, args ...string) {
	c.m.t.Helper()
	began, last, expression := time.Now(), "", regexp.MustCompile(pattern)
	for time.Since(began) < 3*patience {
		if last = c.yeolda(args...); expression.MatchString(last) {
			c.m.t.Logf("%s after %v:\n%s", what, time.Since(began).Round(time.Second), last)
			return
		}
		time.Sleep(2 * time.Second)
	}
	c.m.t.Fatalf("%s: not within %v:\n%s\n%s", what, 3*patience, last, c.m.journal())
}

// call sends a request and returns the answer, which must be a success.
func (c *cloud) call(method, path, body string) []byte {
	c.m.t.Helper()
	request, err := http.NewRequestWithContext(c.m.t.Context(), method, c.api+path, strings.NewReader(body))
	if err != nil {
		c.m.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		c.m.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		c.m.t.Fatalf("%s %s: %s %v\n%s", method, path, response.Status, err, answer)
	}
	return answer
}

// opens presses both doors as staff, and checks that the kernel's lines are driven, then idle.
func (c *cloud) opens() {
	c.m.t.Helper()
	for door, line := range map[string]string{"front": "17", "room/1": "4"} {
		idle := c.m.line(line)
		driven := c.m.watchLine(line, idle)
		var accepted struct {
			Data struct{ RequestID string }
		}
		if err := json.Unmarshal(c.call("POST", "/admin/door/v2/unlock/"+branch+"/"+door, ""), &accepted); err != nil {
			c.m.t.Fatal(err)
		}
		result := c.call("GET", fmt.Sprintf("/admin/door/v2/unlock/subscribe?requestId=%s", accepted.Data.RequestID), "")
		if seen := driven(); !strings.Contains(string(result), `"SUCCESS"`) || !seen {
			c.m.t.Fatalf("%s: got %s and driven %v, want SUCCESS and the line driven", door, result, seen)
		}
		c.m.awaitLine(line, idle)
	}
}
