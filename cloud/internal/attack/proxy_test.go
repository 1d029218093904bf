package attack

import (
	"flag"
	"hash/fnv"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/firmware-sim/testkit/capture"
)

// caddy is the program behind which TestAttacks puts the service, with the shipped Caddyfile (make attack PROXY=1).
var caddy = flag.String("caddy", "", "program of Caddy; empty: no proxy")

// behindCaddy sets what the Caddyfile expects: the metrics at port 9090 of the service's address, and a proxy at 127.0.0.1.
func behindCaddy(t *testing.T, set *config.Settings) {
	t.Helper()
	host, _, err := net.SplitHostPort(set.HTTP.Addr)
	if err != nil {
		t.Fatal(err)
	}
	set.HTTP.MetricsAddr = net.JoinHostPort(host, "9090")
	set.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
}

// startCaddy starts Caddy in front of a service, and sends the requests of its clients there.
func startCaddy(t *testing.T, s *servicetest.Stack) {
	t.Helper()
	host, _, err := net.SplitHostPort(s.Settings.HTTP.Addr)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", ":0") // Caddy listens on all addresses
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	root, dir := "http://"+net.JoinHostPort(host, port), t.TempDir()
	c := exec.Command(*caddy, "run", "--config", "../../../deploy/caddy/Caddyfile", "--adapter", "caddyfile")
	c.Env = append(os.Environ(), "YEOLDA_DOMAIN="+root, "YEOLDA_REPLICAS="+s.Settings.HTTP.Addr, "CADDY_ADMIN=unix/"+dir+"/admin", "HOME="+dir, "XDG_DATA_HOME="+dir)
	var said capture.Output
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	s.Root, s.URL, s.Transport = root, root+"/api", &addresses{known: map[string]*http.Transport{}}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get(s.URL + "/v2/branches")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Caddy does not serve: %v\n%s", err, said.String())
		}
	}
}

// addresses sends requests from a loopback address in place of the one that X-Forwarded-For names, which Caddy does not believe a
// client. Addresses of one network stay in one network.
type addresses struct {
	mu    sync.Mutex
	known map[string]*http.Transport
}

func (a *addresses) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	from := r.Header.Get("X-Forwarded-For")
	r.Header.Del("X-Forwarded-For")
	return a.transport(from).RoundTrip(r)
}

func (a *addresses) transport(from string) *http.Transport {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[from] == nil {
		local := &net.TCPAddr{IP: net.IPv4(127, 200, 0, 1)}
		if addr, err := netip.ParseAddr(from); err == nil {
			network, host := hash(limit.Network(limit.Address(addr))), hash(from)
			local.IP = net.IPv4(127, 1+byte(network%199), 1+byte(network>>8%250), 1+byte(host%250))
		}
		a.known[from] = &http.Transport{DialContext: (&net.Dialer{LocalAddr: local}).DialContext, MaxIdleConnsPerHost: 4}
	}
	return a.known[from]
}

func hash(text string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // cannot fail
	return sum.Sum32()
}
