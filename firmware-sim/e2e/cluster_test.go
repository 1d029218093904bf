package e2e

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// cluster is the service as in production: replicas of the cloud, a broker and a database, each in its own process, with the
// broker configuration of the deployment and the branches of the demo.
type cluster struct {
	*world.World
	t     *testing.T
	stack *world.Stack // addresses of sandbox and simulator
}

// startCluster runs a cluster until the test ends. It skips the test without Mosquitto or PostgreSQL.
func startCluster(t *testing.T, env ...string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w, err := world.Start(ctx, world.Options{Root: root(), Bin: bin, Env: env, Log: programLog(t)})
	if errors.Is(err, world.ErrMissing) && os.Getenv("E2E_REQUIRED") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return &cluster{w, t, &world.Stack{SandboxAt: w.Sandbox, SimAt: w.Simulator, API: w.Replicas[0].API}}
}

// start starts a process again.
func (c *cluster) start(p *world.Process) {
	c.t.Helper()
	if err := p.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// signal sends a signal to a process and waits until it has ended.
func (c *cluster) signal(p *world.Process, signal syscall.Signal) {
	c.t.Helper()
	if err := p.Signal(signal); err != nil {
		c.t.Fatal(err)
	}
}

// query sends a statement to the database directly. Each row is one line of values, separated by bars.
func (c *cluster) query(sql string) []string {
	c.t.Helper()
	rows, err := c.Query(c.t.Context(), sql)
	if err != nil {
		c.t.Fatal(err)
	}
	return rows
}

func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	addresses, err := world.FreeAddresses(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		ports = append(ports, address[strings.LastIndex(address, ":")+1:])
	}
	return ports
}

// answers reports whether an address answers 200.
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

// browser returns one client for each replica. They share their cookies, like a browser behind a load balancer.
func (c *cluster) browser(t *testing.T) (at []*browser) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	shared := &http.Client{Jar: jar, Timeout: 30 * time.Second}
	for _, r := range c.Replicas {
		at = append(at, &browser{t, shared, r.API})
	}
	return at
}

// balancer sends requests to ready replicas, like a proxy in front of them, and retries once at another one if there is
// no answer.
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
	for i, r := range c.Replicas {
		check := answers(r.Metrics + "/readyz")
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

// choose returns the next ready replica that is not the one to avoid; if there is none, any other.
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
func (c *cluster) connect(t *testing.T, address, branch, clientID string) *paho.Client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
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

// mayPublish asks the broker whether the agent of a branch, which must not be connected, may publish to a topic.
func (c *cluster) mayPublish(t *testing.T, branch, topic string) bool {
	t.Helper()
	answer, err := c.connect(t, c.Brokers[0].Agents, branch, "test-"+branch).Publish(t.Context(), &paho.Publish{Topic: topic, QoS: 1})
	if answer == nil {
		t.Fatal(err)
	}
	return answer.ReasonCode < 0x80
}
