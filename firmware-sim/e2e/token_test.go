package e2e

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	yeolda "github.com/yeolda/yeolda/cloud/client"
)

// revokedTokens creates tokens at one replica, uses each at all of them without a pause, with a live connection at each, and
// revokes it at the other. A request that begins after the revocation was answered must be rejected by every replica, and the
// live connections must end.
func (c *cluster) revokedTokens(t *testing.T, rounds int) {
	hq := c.browser(t)
	hq[0].must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	var ends []time.Duration
	for range rounds {
		ends = append(ends, c.revokeToken(t, hq)...)
	}
	slices.Sort(ends)
	t.Logf("live connections end after the revocation: median %s, slowest %s", ends[len(ends)/2], ends[len(ends)-1])
}

// revokeToken returns the times between the answer to the revocation and the end of the live connections.
func (c *cluster) revokeToken(t *testing.T, hq []*browser) (ends []time.Duration) {
	var token struct{ ID, Token string }
	hq[0].must("POST", "/v2/admin/tokens", map[string]any{"name": "short", "scopes": []string{"read"}}, &token)
	var using sync.WaitGroup
	defer using.Wait()
	over, closed := make(chan struct{}), make(chan time.Time, len(c.Replicas))
	for _, r := range c.Replicas {
		live := c.watch(t, r.API, token.Token)
		defer live.Close()
		using.Go(func() { closed <- untilClosed(t, live) })
		using.Go(func() { c.useUntil(t, r.API, token.Token, over) })
	}
	stop := sync.OnceFunc(func() { close(over) })
	defer stop()
	hq[1].must("DELETE", "/v2/admin/tokens/"+token.ID, nil, nil)
	revoked := time.Now()
	stop()
	for range c.Replicas {
		ends = append(ends, (<-closed).Sub(revoked))
	}
	return ends
}

// watch opens a live connection with a token.
func (c *cluster) watch(t *testing.T, api, token string) *websocket.Conn {
	t.Helper()
	address := strings.Replace(api, "http", "ws", 1) + "/v2/admin/live"
	conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), address, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return conn
}

// untilClosed returns the time at which the service ended a connection.
func untilClosed(t *testing.T, conn *websocket.Conn) time.Time {
	for {
		_, _, err := conn.ReadMessage()
		if err == nil {
			continue // an event
		}
		if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
			t.Errorf("the live connection ended with %v", err)
		}
		return time.Now()
	}
}

// useUntil reads with a token until over, and once more, which must be rejected.
func (c *cluster) useUntil(t *testing.T, api, token string, over <-chan struct{}) {
	client, err := yeolda.New(strings.TrimSuffix(api, "/api"), token)
	if err != nil {
		t.Error(err)
		return
	}
	limit := 1
	for {
		var last bool
		select {
		case <-over:
			last = true
		default:
		}
		_, err := client.ListEventsWithResponse(context.WithoutCancel(t.Context()), &yeolda.ListEventsParams{Limit: &limit})
		rejected := new(yeolda.Error)
		unauthorized := errors.As(err, &rejected) && rejected.HTTP == http.StatusUnauthorized
		switch {
		case err != nil && !unauthorized:
			t.Errorf("a request with the token: %v", err)
			return
		case last && !unauthorized:
			t.Error("a replica accepts a token whose revocation was answered")
		}
		if last {
			return
		}
	}
}
