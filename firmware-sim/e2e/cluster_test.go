package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// daemon is one process of a cluster, which tests kill and start again.
type daemon struct {
	name    string
	command func() *exec.Cmd
	ready   func() bool
	running *exec.Cmd
	done    chan struct{}
}

// cluster is the service as it runs in production: replicas of the cloud, a broker and a database, all processes of their
// own, with the deployment's configuration of the broker.
type cluster struct {
	t                    *testing.T
	dir                  string
	database             string // URL
	psql                 string
	postgres             *daemon
	broker               *daemon
	replicas             []*replica
	cloudPort, agentPort string       // of the broker
	stack                *world.Stack // addresses of sandbox and simulator
}

// replica is one process of the cloud.
type replica struct {
	*daemon
	api     string
	metrics string
}

const (
	brokerUser     = "cloud"
	brokerPassword = "secret-of-the-cloud"
)

// startCluster runs a cluster with the demo's branches until the test ends. It skips the test without Mosquitto.
func startCluster(t *testing.T, env ...string) *cluster {
	t.Helper()
	mosquitto := needProgram(t, "mosquitto", "/usr/sbin/mosquitto")
	passwd := needProgram(t, "mosquitto_passwd", "/usr/bin/mosquitto_passwd")
	dir, err := os.MkdirTemp(bin, "cluster-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ports := freePorts(t, 10)
	c := &cluster{t: t, dir: dir, cloudPort: ports[8], agentPort: ports[9]}
	address := func(i int) string { return "127.0.0.1:" + ports[i] }
	c.startPostgres(ports[0])

	env = append(append(os.Environ(),
		"YEOLDA_DATABASE_URL="+c.database, "YEOLDA_COOKIE_SECURE=false", "YEOLDA_RATE_LIMITS=off",
		"YEOLDA_SANDBOX_ADDR="+address(1), "YEOLDA_SANDBOX_SMTP_ADDR="+address(2), "YEOLDA_SIM_ADDR="+address(3),
		"YEOLDA_HTTP_ADDR="+address(4), "YEOLDA_METRICS_ADDR="+address(5)), env...)
	c.stack = &world.Stack{SandboxAt: "http://" + address(1), SimAt: "http://" + address(3), API: "http://" + address(4) + "/api"}
	program := func(env []string, name string, args ...string) *exec.Cmd {
		command := exec.Command(filepath.Join(bin, name), args...)
		command.Env = env
		return command
	}
	run := func(args ...string) string {
		out, err := program(env, world.Service, args...).Output()
		if err != nil {
			t.Fatalf("yeolda %v: %v", args, err)
		}
		return string(out)
	}
	run("branch", "apply", "-f", filepath.Join(root(), "deploy/demo/branches.yaml"))
	c.startBroker(mosquitto, passwd, run("agent", "acl"))

	c.launch(&daemon{name: world.Sandbox, command: func() *exec.Cmd { return program(env, world.Sandbox) }, ready: answers(c.stack.SandboxAt + "/")})
	for i := range 2 {
		own := append(slices.Clone(env), "YEOLDA_HTTP_ADDR="+address(4+2*i), "YEOLDA_METRICS_ADDR="+address(5+2*i),
			fmt.Sprintf("YEOLDA_BROKER_URL=mqtt://%s:%s@%s", brokerUser, brokerPassword, address(8)))
		r := &replica{api: "http://" + address(4+2*i) + "/api", metrics: "http://" + address(5+2*i)}
		r.daemon = &daemon{name: "replica " + strconv.Itoa(i+1), ready: answers(r.metrics + "/readyz"),
			command: func() *exec.Cmd { return program(own, world.Service, "serve", "--log-format", "text") }}
		c.replicas = append(c.replicas, r)
		c.launch(r.daemon)
	}
	agents := append(slices.Clone(env), "YEOLDA_BROKER_URL=mqtt://"+address(9))
	c.launch(&daemon{name: world.Simulator, command: func() *exec.Cmd { return program(agents, world.Simulator) }, ready: answers(c.stack.SimAt + "/")})
	awaitAgents(t, c.stack, "gangnam", "hongdae")
	return c
}

func needProgram(t *testing.T, name, usually string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if _, err := os.Stat(usually); err != nil {
		if os.Getenv("E2E_REQUIRED") == "1" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	return usually
}

func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all at once, so that they differ
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports
}

// answers reports that an address answers 200.
func answers(address string) func() bool {
	client := &http.Client{Timeout: time.Second}
	return func() bool {
		response, err := client.Get(address)
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
}

func listens(port string) func() bool {
	return func() bool {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
}

// launch starts a process, waits until it is ready, and ends it with the test.
func (c *cluster) launch(d *daemon) {
	c.t.Helper()
	c.start(d)
	c.t.Cleanup(func() {
		_ = d.running.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.done:
		case <-time.After(40 * time.Second):
			_ = d.running.Process.Kill()
			<-d.done
			c.t.Errorf("%s did not stop", d.name)
		}
	})
}

// start starts a process, perhaps again.
func (c *cluster) start(d *daemon) {
	c.t.Helper()
	d.running, d.done = d.command(), make(chan struct{})
	log := &prefixed{name: d.name, out: c.t.Output()}
	d.running.Stdout, d.running.Stderr = log, log
	if err := d.running.Start(); err != nil {
		c.t.Fatalf("%s: %v", d.name, err)
	}
	running, done := d.running, d.done
	go func() {
		_ = running.Wait()
		close(done)
	}()
	deadline := time.Now().Add(40 * time.Second)
	for !d.ready() {
		select {
		case <-done:
			c.t.Fatalf("%s ended before it was ready: %v", d.name, running.ProcessState)
		case <-time.After(20 * time.Millisecond): // another process: there is no event to wait for
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s is not ready", d.name)
		}
	}
}

// signal sends a signal and waits for the end of the process.
func (c *cluster) signal(d *daemon, signal syscall.Signal) {
	c.t.Helper()
	if err := d.running.Process.Signal(signal); err != nil {
		c.t.Fatalf("%s: %v", d.name, err)
	}
	<-d.done
}

// prefixed says whose line it is. Once the test is over there is nobody to tell.
type prefixed struct {
	name string
	out  interface{ Write([]byte) (int, error) }
	mu   sync.Mutex
}

// Write implements io.Writer.
func (p *prefixed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Fprintf(p.out, "[%s] %s", p.name, line)
	}
	return len(text), nil
}

// startPostgres makes a database server with a kill -9 in mind: fsync stays on.
func (c *cluster) startPostgres(port string) {
	c.t.Helper()
	programs := postgresPrograms(c.t)
	data := filepath.Join(c.dir, "postgres")
	if err := os.Mkdir(data, 0o700); err != nil {
		c.t.Fatal(err)
	}
	as := postgresAccount(c.t, data)
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, name), args...)
		cmd.Dir, cmd.SysProcAttr = data, &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	if out, err := command("initdb", "-D", data, "-A", "trust", "-U", "yeolda", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		c.t.Fatalf("initdb: %v\n%s", err, out)
	}
	c.database = "postgres://yeolda@127.0.0.1:" + port + "/postgres?sslmode=disable"
	c.psql = filepath.Join(programs, "psql")
	c.postgres = &daemon{name: "postgres",
		command: func() *exec.Cmd {
			return command("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
		},
		ready: func() bool { return exec.Command(c.psql, c.database, "-c", "select 1").Run() == nil },
	}
	c.launch(c.postgres)
}

func postgresPrograms(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("YEOLDA_PG_BIN"); dir != "" {
		return dir
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("PostgreSQL's server programs are not in /usr/lib/postgresql; name their directory in YEOLDA_PG_BIN")
	}
	return filepath.Dir(found[len(found)-1])
}

// postgresAccount is who a server runs as that root starts; PostgreSQL never runs as root.
func postgresAccount(t *testing.T, data string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skip("PostgreSQL does not run as root and there is no user postgres")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(data, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// query asks the database itself; each row is one line of values between bars.
func (c *cluster) query(sql string) []string {
	c.t.Helper()
	out, err := exec.Command(c.psql, c.database, "-At", "-v", "ON_ERROR_STOP=1", "-c", sql).Output()
	if err != nil {
		c.t.Fatalf("psql: %v", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// startBroker runs Mosquitto with deploy/mosquitto/mosquitto.conf, with other ports and files, and without TLS.
func (c *cluster) startBroker(program, passwd, acl string) {
	c.t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(), "deploy/mosquitto/mosquitto.conf"))
	if err != nil {
		c.t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(c.dir, name) }
	config := strings.NewReplacer(
		"listener 1883", "listener "+c.cloudPort+" 127.0.0.1", "listener 8883", "listener "+c.agentPort+" 127.0.0.1",
		"/etc/mosquitto/passwd", file("passwd"), "/etc/mosquitto/acl", file("acl"),
		"certfile", "#", "keyfile", "#", "tls_version", "#").Replace(string(raw))
	if os.Geteuid() == 0 {
		config += "\nuser root\n" // the files are root's
	}
	users := brokerUser + ":" + brokerPassword + "\n"
	for _, branch := range []string{"gangnam", "hongdae", "jamsil"} {
		users += fmt.Sprintf("agent-%s:agent-%[1]s-demo\n", branch)
	}
	for name, content := range map[string]string{"mosquitto.conf": config, "acl": acl, "passwd": users} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	if out, err := exec.Command(passwd, "-U", file("passwd")).CombinedOutput(); err != nil {
		c.t.Fatalf("mosquitto_passwd: %v\n%s", err, out)
	}
	c.broker = &daemon{name: "mosquitto", command: func() *exec.Cmd { return exec.Command(program, "-c", file("mosquitto.conf")) }, ready: listens(c.cloudPort)}
	c.launch(c.broker)
}

// browser returns clients of each replica that share their cookies, as behind a load balancer.
func (c *cluster) browser(t *testing.T) (at []*browser) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	shared := &http.Client{Jar: jar, Timeout: 30 * time.Second}
	for _, r := range c.replicas {
		at = append(at, &browser{t, shared, r.api})
	}
	return at
}

// balancer sends requests to replicas that say they are ready, as a proxy in front of them does, and tries another one
// once when there is no answer.
type balancer struct {
	cluster *cluster
	http    *http.Client
	mu      sync.Mutex
	ready   []bool
	next    int
}

// balance watches the replicas until ctx ends.
func (c *cluster) balance(ctx context.Context, jar http.CookieJar) *balancer {
	b := &balancer{cluster: c, http: &http.Client{Jar: jar, Timeout: 30 * time.Second}, ready: []bool{true, true}}
	for i, r := range c.replicas {
		check := answers(r.metrics + "/readyz")
		go func() {
			for ctx.Err() == nil {
				ok := check()
				b.mu.Lock()
				b.ready[i] = ok
				b.mu.Unlock()
				time.Sleep(100 * time.Millisecond)
			}
		}()
	}
	return b
}

// choose returns the next replica that is ready and is not the one to avoid, or any other than that.
func (b *balancer) choose(avoid int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	for i := range b.ready {
		if n := (b.next + i) % len(b.ready); b.ready[n] && n != avoid {
			return n
		}
	}
	return (avoid + 1) % len(b.ready)
}

// connect opens a connection to the broker with the credential of a branch's agent, under any client id.
func (c *cluster) connect(t *testing.T, port, branch, clientID string) *paho.Client {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	client := paho.NewClient(paho.ClientConfig{Conn: conn, PacketTimeout: 5 * time.Second})
	username := "agent-" + branch
	answer, err := client.Connect(t.Context(), &paho.Connect{ClientID: clientID, CleanStart: true, KeepAlive: 10,
		Username: username, UsernameFlag: true, Password: []byte(username + "-demo"), PasswordFlag: true})
	if err != nil {
		t.Fatalf("%s: %v", username, err)
	}
	if answer.ReasonCode != 0 {
		t.Fatalf("%s: reason %#x", username, answer.ReasonCode)
	}
	t.Cleanup(func() { _ = client.Disconnect(&paho.Disconnect{}) })
	return client
}

// mayPublish asks the broker whether the agent of a branch may publish to a topic.
func (c *cluster) mayPublish(t *testing.T, branch, topic string) bool {
	t.Helper()
	answer, err := c.connect(t, c.cloudPort, branch, "test-"+branch).Publish(t.Context(), &paho.Publish{Topic: topic, QoS: 1})
	if answer == nil {
		t.Fatal(err)
	}
	return answer.ReasonCode < 0x80
}
