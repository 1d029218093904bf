package console_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/console"
	"github.com/yeolda/yeolda/cloud/internal/live"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// An open connection for all branches follows the role and the branches of its administrator.
func TestOpenConnectionLosesBranches(t *testing.T) {
	console.SetPingInterval(200 * time.Millisecond)
	s := servicetest.Start(t)
	s.Admin(t, "hq", "hq-demo").Post("/v2/admin/administrators", map[string]any{"id": "second", "password": "two at the top", "role": "hq"}).OK(t)
	second := s.Admin(t, "second", "two at the top")
	dialer := websocket.Dialer{Jar: second.HTTP.Jar}
	conn, answer, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+"/v2/admin/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	defer conn.Close()
	batches := make(chan []live.Event, 100)
	go func() {
		defer close(batches)
		for {
			var list struct{ Events []live.Event }
			if conn.ReadJSON(&list) != nil {
				return
			}
			batches <- list.Events
		}
	}()
	// Both branches change in one statement, so one batch has both. The service ends the alerts, so one change may be missed.
	change := time.NewTicker(live.AllInterval)
	defer change.Stop()
	limit := time.After(time.Minute)
	next := func() (gangnam, hongdae bool) {
		t.Helper()
		for {
			select {
			case <-limit:
				t.Fatal("the branches of the connection's events have not changed in a minute")
			case at := <-change.C:
				_, err := s.DB.Pool.Exec(t.Context(), `select alert_open('clock', code, $1, clock_timestamp()) from unnest(array['gangnam', 'hongdae']) code`, at.String())
				if err != nil {
					t.Fatal(err)
				}
			case batch, ok := <-batches:
				if !ok {
					t.Fatal("the connection ended")
				}
				return slices.Contains(batch, live.Event{Kind: "branch", Target: "gangnam"}), slices.Contains(batch, live.Event{Kind: "branch", Target: "hongdae"})
			}
		}
	}
	for gangnam := false; !gangnam; {
		gangnam, _ = next()
	}
	if err := (&account.Service{DB: s.DB}).ChangeRights(t.Context(), "second", account.Manager, []string{"hongdae"}, "test"); err != nil {
		t.Fatal(err)
	}
	for alone := 0; alone < 3; { // until the next ping both may come
		switch gangnam, hongdae := next(); {
		case gangnam:
			alone = 0
		case hongdae:
			alone++
		}
	}
}

// An open connection ends once its administrator has a role without the console's screens.
func TestOpenConnectionEndsWithTheRole(t *testing.T) {
	console.SetPingInterval(200 * time.Millisecond)
	s := servicetest.Start(t)
	s.Admin(t, "hq", "hq-demo").Post("/v2/admin/administrators",
		map[string]any{"id": "moved", "password": "from desk to broom", "role": "front-desk", "branches": []string{"gangnam"}}).OK(t)
	moved := s.Admin(t, "moved", "from desk to broom")
	dialer := websocket.Dialer{Jar: moved.HTTP.Jar}
	conn, answer, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+"/v2/admin/live?branch=gangnam&date=2036-11-25", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	defer conn.Close()
	if err := (&account.Service{DB: s.DB}).ChangeRights(t.Context(), "moved", account.Cleaner, []string{"gangnam"}, "test"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
	for err == nil {
		_, _, err = conn.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}

// A connection without changes carries a message at each ping, from which a browser, which shows no pings to scripts, can tell that
// the network still delivers.
func TestOpenConnectionIsNeverSilent(t *testing.T) {
	console.SetPingInterval(200 * time.Millisecond)
	s := servicetest.Start(t)
	dialer := websocket.Dialer{Jar: s.Admin(t, "hq", "hq-demo").HTTP.Jar}
	conn, answer, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+"/v2/admin/live?branch=gangnam&date=2036-11-25", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
	for range 2 {
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(message)); got != `{"events":[]}` {
			t.Errorf("got %s, want a message without events", got)
		}
	}
}
