package access_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
)

// distant returns a replica that reaches the database through a proxy.
func (h *house) distant() (*access.Service, *faultproxy.Proxy) {
	h.t.Helper()
	config := h.db.Pool.Config().ConnConfig
	network, address := "tcp", net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	if strings.HasPrefix(config.Host, "/") {
		network, address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)
	}
	proxy, err := faultproxy.New(func() (net.Conn, error) {
		return new(net.Dialer).DialContext(context.WithoutCancel(h.t.Context()), network, address)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(proxy.Close)
	dsn := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: proxy.Addr(), Path: config.Database, RawQuery: "sslmode=disable"}
	s := h.replica()
	if s.DB, err = postgres.Open(h.t.Context(), dsn.String(), h.log()); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(s.DB.Close)
	s.Link = h.link
	h.run(s.Run)
	return s, proxy
}

// connections returns the process ids of the connections for doors.
func (h *house) connections() []int32 {
	h.t.Helper()
	return one[[]int32](h, `select coalesce(array_agg(pid), '{}') from pg_stat_activity where datname = current_database() and application_name = $1`, "yeolda doors")
}

// A press is on its way to the database when the network stalls, and its guest receives an error. The statement that arrives later writes no
// request: another replica would take it for one of a replica that died, and open the door for a guest who may have left.
func TestPressThatReachesTheDatabaseLate(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	before := h.connections()
	s, proxy := h.distant()
	h.until("the comparison of the clocks", s.Compared)
	press := func(key string) (id string, err error) {
		return s.Request(t.Context(), "gangnam", access.Room, key)
	}
	other := h.reserve(2)
	id, err := press(other)
	if err != nil || h.await(h.Service, id, other).Status != access.Success {
		t.Fatalf("a press before: %v", err)
	}
	stalled := func() int {
		return one[int](h, `select count(*) from pg_stat_activity where datname = current_database() and application_name = $1 and pid <> all($2)`,
			"yeolda doors", before)
	}
	open := stalled()

	key := h.reserve(1)
	proxy.Add(faultproxy.Rule{On: string(postgres.HashKey(uuid.MustParse(key))), Delay: access.PressTimeout + time.Second})
	if id, err := press(key); err == nil {
		t.Fatalf("request %s was accepted, want an error", id)
	}
	h.until("the statement to arrive and its connection to end", func() bool { return stalled() < open })
	const written = `select count(*) from door_request where key_hash = $1`
	if hash := postgres.HashKey(uuid.MustParse(key)); one[int](h, written, hash) != 0 {
		h.until("its end", func() bool { return one[int](h, written+` and finished_at is null`, hash) == 0 })
		t.Errorf("the press was written, and drove %v", a.Driven()[1:])
	}
	if id, err = press(key); err != nil || h.await(h.Service, id, key).Status != access.Success {
		t.Errorf("a press afterwards: %v", err)
	}
}
