package console_test

import (
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
	pings := make(chan struct{}, 1)
	conn.SetPingHandler(func(text string) error {
		select {
		case pings <- struct{}{}:
		default: // the test is not waiting for one
		}
		return conn.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(time.Second))
	})
	events := make(chan live.Event, 100)
	go func() {
		defer close(events)
		for {
			var list struct{ Events []live.Event }
			if conn.ReadJSON(&list) != nil {
				return
			}
			for _, e := range list.Events {
				events <- e
			}
		}
	}()
	alert := func(branch, subject string) {
		t.Helper()
		if _, err := s.DB.Pool.Exec(t.Context(), `select alert_open('clock', $1, $2, clock_timestamp())`, branch, subject); err != nil {
			t.Fatal(err)
		}
	}
	alert("gangnam", "before")
	for e := range events {
		if e.Target == "gangnam" {
			break
		}
	}
	if err := (&account.Service{DB: s.DB}).ChangeRights(t.Context(), "second", account.Manager, []string{"hongdae"}, "test"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // one was kept, and one may have been on its way; the third one was sent after the change
		<-pings
	}
	for len(events) > 0 {
		<-events
	}
	alert("gangnam", "after")
	alert("hongdae", "after")
	for e := range events {
		if e.Target == "gangnam" {
			t.Fatalf("got %+v of a branch that was lost", e)
		}
		if e.Target == "hongdae" {
			return
		}
	}
	t.Error("the connection ended, want events of hongdae")
}
