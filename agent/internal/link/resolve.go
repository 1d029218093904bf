package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	resolveTimeout = 10 * time.Second
	// cacheDelay is the head start of name resolution over the cached address.
	cacheDelay = time.Second
	// addressDelay separates the attempts to the addresses of one name, as in RFC 8305.
	addressDelay = 250 * time.Millisecond
)

// tcpDialer opens TCP connections on networks whose name servers fail. It asks all name servers at once, because a silent
// first server would otherwise use up the time, and also tries the last address that worked.
type tcpDialer struct {
	servers func() []string // name servers with ports; nil or empty: the system's resolver
	cache   addressCache
}

func newTCPDialer(cacheFile string) *tcpDialer {
	return &tcpDialer{servers: systemNameServers, cache: addressCache{file: cacheFile}}
}

// dial connects to an address with a host name or an IP. useCache allows the cached address, which requires that the server
// proves its identity later, by TLS.
func (d *tcpDialer) dial(ctx context.Context, address string, useCache bool) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return connectTCP(ctx, address)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cached, avoid := "", d.cache.rejected()
	if useCache {
		cached = d.cache.get(host)
	}
	if cached == "" {
		avoid = ""
	}

	results := make(chan dialResult)
	pending := 1
	go func() { results <- d.resolveAndDial(ctx, host, port, avoid) }()
	if cached != "" {
		pending++
		go func() { results <- dialCached(ctx, net.JoinHostPort(cached, port)) }()
	}
	var failed error
	for ; pending > 0; pending-- {
		r := <-results
		if r.err != nil {
			failed = errors.Join(failed, r.err)
			continue
		}
		cancel()
		go closeRest(results, pending-1)
		d.cache.dialed(host, r.conn.RemoteAddr())
		return r.conn, nil
	}
	return nil, failed
}

type dialResult struct {
	conn net.Conn
	err  error
}

// closeRest closes the connections of attempts that lost the race.
func closeRest(results <-chan dialResult, n int) {
	for range n {
		if r := <-results; r.err == nil {
			_ = r.conn.Close() // never used
		}
	}
}

func dialCached(ctx context.Context, address string) dialResult {
	if err := sleep(ctx, cacheDelay); err != nil {
		return dialResult{err: err}
	}
	conn, err := connectTCP(ctx, address)
	return dialResult{conn, err}
}

// resolveAndDial tries the addresses of a host but one, each one addressDelay after the previous one.
func (d *tcpDialer) resolveAndDial(ctx context.Context, host, port, avoid string) dialResult {
	addresses, err := d.resolve(ctx, host)
	if err != nil {
		return dialResult{err: fmt.Errorf("resolve %s: %w", host, err)}
	}
	addresses = slices.DeleteFunc(addresses, func(a string) bool { return a == avoid })
	if len(addresses) == 0 {
		return dialResult{err: fmt.Errorf("resolve %s: there is no broker at %s", host, avoid)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialResult)
	for i, a := range addresses {
		go func() {
			err := sleep(ctx, time.Duration(i)*addressDelay)
			var conn net.Conn
			if err == nil {
				conn, err = connectTCP(ctx, net.JoinHostPort(a, port))
			}
			results <- dialResult{conn, err}
		}()
	}
	var failed error
	for i := range addresses {
		r := <-results
		if r.err == nil {
			cancel()
			go closeRest(results, len(addresses)-i-1)
			return r
		}
		failed = errors.Join(failed, r.err)
	}
	return dialResult{err: failed}
}

func connectTCP(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn, nil
}

// resolve asks every name server at once and returns the first answer.
func (d *tcpDialer) resolve(ctx context.Context, host string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	var servers []string
	if d.servers != nil {
		servers = d.servers()
	}
	if len(servers) == 0 {
		return net.DefaultResolver.LookupHost(ctx, host)
	}
	type answer struct {
		addresses []string
		err       error
	}
	answers := make(chan answer, len(servers))
	for _, server := range servers {
		go func() {
			addresses, err := resolverOf(ctx, server).LookupHost(ctx, host)
			if err != nil {
				err = fmt.Errorf("name server %s: %w", server, err)
			}
			answers <- answer{addresses, err}
		}()
	}
	var failed error
	for range servers {
		a := <-answers
		if a.err == nil {
			return a.addresses, nil
		}
		failed = errors.Join(failed, a.err)
	}
	return nil, failed
}

// resolverOf returns a resolver that sends every question to one server. When ctx is done, it closes its sockets: Go's resolver
// would wait for a silent server until its own time-out.
func resolverOf(ctx context.Context, server string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(_ context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, server)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}}
}

// systemNameServers reads resolv.conf(5).
func systemNameServers() []string {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	return nameServers(string(text))
}

func nameServers(resolvConf string) []string {
	var servers []string
	for line := range strings.Lines(resolvConf) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if _, err := netip.ParseAddr(fields[1]); err == nil {
			servers = append(servers, net.JoinHostPort(fields[1], "53"))
		}
	}
	return servers
}

// addressCache remembers the last address on which the broker answered, across restarts.
type addressCache struct {
	file string // empty: in memory only

	writing sync.Mutex // held while the file is written

	mu         sync.Mutex
	host, last string // dialed last
	bad        string // an address on which no broker answered
	avoid      string // the same, until the next attempt
}

// get returns the cached address of a host, or "".
func (c *addressCache) get(host string) string {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return ""
	}
	cachedHost, address, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := netip.ParseAddr(address); err != nil || cachedHost != host || address == c.bad {
		return ""
	}
	return address
}

func (c *addressCache) dialed(host string, address net.Addr) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.host, c.last = host, tcp.IP.String()
}

// confirm returns what stores the address that was dialed last: the broker answered there.
func (c *addressCache) confirm() (store func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bad = ""
	text := c.host + " " + c.last + "\n"
	if c.file == "" || c.last == "" {
		return func() error { return nil }
	}
	return func() error { return c.store(text) }
}

func (c *addressCache) store(text string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if stored, err := os.ReadFile(c.file); err == nil && string(stored) == text {
		return nil
	}
	temporary := c.file + ".new"
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cache the broker's address: %w", err)
	}
	if err := os.Rename(temporary, filepath.Clean(c.file)); err != nil {
		return fmt.Errorf("cache the broker's address: %w", err)
	}
	return nil
}

// reject excludes the address that was dialed last from the cache until another one works: whatever answered there is not the broker. The
// next attempt uses the cached address only, if there is one: a name server that lies, as that of a captive portal, names the same again.
func (c *addressCache) reject() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bad, c.avoid = c.last, c.last
}

// rejected returns the address that the last attempt has rejected, or "".
func (c *addressCache) rejected() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	address := c.avoid
	c.avoid = ""
	return address
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
