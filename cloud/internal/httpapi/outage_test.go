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

// cable is a connection between service and database that can be cut.
type cable struct {
	server string // socket of the database

	mu    sync.Mutex
	cut   bool
	lines map[net.Conn]bool
}

// through routes the service's connections to the database in url over a cable and returns the address to use instead.
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
			_, _ = io.Copy(pair[0], pair[1]) // one of the ends closed it
			_ = pair[0].Close()
			_ = pair[1].Close()
		})
	}
	directions.Wait()
}

// set cuts or restores the cable.
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

// Without its database the service answers quickly in the envelope, reveals no cause, and recovers with the database.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	line := new(cable)
	s := servicetest.Start(t, func(set *config.Settings) {
		set.Database.URL = line.through(t, set.Database.URL)
	})
	c := newCast(t, s)
	table := probes(t, c)
	internal := reply{500, "InternalServerError", "일시적인 오류가 발생했습니다."}
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
		if got := (reply{answer.HTTP, answer.ErrorType, answer.Message}); got != internal || answer.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %+v, X-Request-Id %q", o.OperationID, got, answer.Header.Get("X-Request-Id"))
		}
	}
	if failed < 40 { // every request with a session needs the database
		t.Errorf("only %d operations failed", failed)
	}
	// No session is lost.
	line.set(false)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
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
