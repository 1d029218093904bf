package httpapi_test

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// cable is a relay between service and database that can be cut, stalled or slow.
type cable struct {
	server string // socket of the database

	mu    sync.Mutex
	cut   bool
	gate  chan struct{} // not nil: data waits until it is closed
	delay time.Duration // of all data
	lines map[net.Conn]bool
}

// through relays connections to the database over the cable. It returns the address that the service must use instead.
func (c *cable) through(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	port := query.Get("port")
	if port == "" {
		port = "5432"
	}
	const socket = ".s.PGSQL."
	c.server, c.lines = filepath.Join(query.Get("host"), socket+port), map[net.Conn]bool{}
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, socket+port))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { c.carry(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		c.set(true)
		serving.Wait()
	})
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	return u.String()
}

func (c *cable) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	c.mu.Lock()
	if c.cut {
		c.mu.Unlock()
		return
	}
	c.lines[client], c.lines[server] = true, true
	c.mu.Unlock()
	var directions sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		directions.Go(func() {
			_, _ = io.Copy(pair[0], io.TeeReader(pair[1], stalling{c})) // the copy ends when either side closes the connection
			_ = pair[0].Close()
			_ = pair[1].Close()
		})
	}
	directions.Wait()
}

// stalling delays the data that passes through it while the cable is slow or stalled.
type stalling struct{ *cable }

func (s stalling) Write(p []byte) (int, error) {
	s.mu.Lock()
	gate, delay := s.gate, s.delay
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	time.Sleep(delay)
	return len(p), nil
}

// stall holds back all data, with connections open, until the returned function is called.
func (c *cable) stall() (resume func()) {
	gate := make(chan struct{})
	c.mu.Lock()
	c.gate = gate
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		c.gate = nil
		c.mu.Unlock()
		close(gate)
	}
}

// slow delays all data from now on.
func (c *cable) slow(delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = delay
}

// set cuts the cable and closes its connections, or restores it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if !cut {
		return
	}
	for line := range c.lines {
		_ = line.Close()
	}
	clear(c.lines)
}

// If the database is unreachable, the service answers quickly in the envelope without the cause. It recovers when the
// database is reachable again.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	line := new(cable)
	s := servicetest.Start(t, func(set *config.Settings) {
		set.Database.URL = line.through(t, set.Database.URL)
	})
	c := newCast(t, s)
	table := probes(t, c)
	unavailable := reply{503, "ServiceUnavailableError", "일시적으로 서비스를 이용할 수 없습니다. 잠시 후 다시 시도해 주세요."}
	line.set(true)
	failed := 0
	for _, o := range contract.Operations() {
		began := time.Now()
		answer := c.HQ.Send(o.Method, table[o.OperationID].path, table[o.OperationID].body, nil)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %s", o.OperationID, took)
		}
		if text := string(answer.Raw); strings.Contains(text, "goroutine") || strings.Contains(text, "pgx") || strings.Contains(text, "SQL") && o.OperationID != "openAPI" {
			t.Errorf("%s tells: %s", o.OperationID, text)
		}
		if answer.HTTP < 500 {
			continue
		}
		failed++
		answer = answer.Envelope(t)
		if got := (reply{answer.HTTP, answer.ErrorType, answer.Message}); got != unavailable || answer.Header.Get("Retry-After") == "" || answer.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %+v, X-Request-Id %q", o.OperationID, got, answer.Header.Get("X-Request-Id"))
		}
	}
	if failed < 40 { // every request with a session needs the database
		t.Errorf("only %d operations failed", failed)
	}
	// No session is lost.
	line.set(false)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		answer := c.Nobody.Get("/v2/branches")
		if answer.HTTP == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not back: %d %s", answer.HTTP, answer.Raw)
		}
	}
	c.Customer.Get("/my-reservations").OK(t)
	c.HQ.Get(table["reservationDetail"].path).OK(t)
}

// TestFrozenDatabase stalls the database connections of a running service. Every request must end with 503 at its deadline,
// although no connection is closed and no statement fails.
func TestFrozenDatabase(t *testing.T) {
	t.Parallel()
	line := new(cable)
	s := servicetest.Start(t, func(set *config.Settings) {
		set.Database.URL = line.through(t, set.Database.URL)
		set.Times.DoorResultTimeout = time.Second
	})
	guest := s.Client(t)
	guest.Get("/v2/branches").OK(t)
	defer line.stall()()
	var group sync.WaitGroup
	for _, path := range []string{
		"/v2/branches", "/v2/branches/gangnam/calendar?yearMonth=2026-11",
		"/door/v2/unlock/subscribe?requestId=6f6a3c9e-1c5b-4c58-9a3e-0d3a5c1d2e3f&key=6f6a3c9e-1c5b-4c58-9a3e-0d3a5c1d2e3f",
	} {
		group.Go(func() {
			answer := guest.Get(path)
			if answer.HTTP != 503 || answer.Header.Get("Retry-After") == "" {
				t.Errorf("GET %s: got %d %s with Retry-After %q, want 503", path, answer.HTTP, answer.Raw, answer.Header.Get("Retry-After"))
			}
		})
	}
	group.Wait()
}
