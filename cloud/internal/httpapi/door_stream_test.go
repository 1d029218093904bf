package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// TestStreamedUnlock checks an unlock request whose response streams its result.
func TestStreamedUnlock(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.Times.DoorResultTimeout = time.Second })
	a := connectAgent(t, s, "gangnam", protocol.Inventory{})
	waitOnline(t, a)
	c, key := s.Client(t), keyFor(t, s, 3)
	accept := http.Header{"Accept": {"text/event-stream"}}

	opened := c.Send(http.MethodPost, unlockPath, unlockBody("room", key), accept)
	id := opened.Header.Get("Door-Request")
	if event := opened.Event(t); event.Status != "SUCCESS" || *event.Device != "room_3" {
		t.Errorf("got %+v, want SUCCESS of room_3", event)
	}
	query := url.Values{"requestId": {id}, "key": {key}}
	if again := subscribe(t, s, c, subscribePath, query, ""); again.body != string(opened.Raw) {
		t.Errorf("subscribing with Door-Request returned %q, want %q", again.body, opened.Raw)
	}
	refused := c.Send(http.MethodPost, unlockPath, unlockBody("window", key), accept)
	if refused.HTTP != http.StatusBadRequest || !strings.Contains(string(refused.Raw), "IllegalArguemntError") {
		t.Errorf("got %d %s, want 400 in the envelope", refused.HTTP, refused.Raw)
	}

	both := c.Send(http.MethodPost, unlockPath, unlockBody("room", key), http.Header{"Accept": {"text/event-stream, application/json"}})
	if !strings.Contains(string(both.Raw), `"requestId"`) {
		t.Errorf("a client that accepts JSON, too, got %q, want the envelope with requestId", both.Raw)
	}

	a.Fail(agenttest.Faults{Silent: true})
	silent := c.Send(http.MethodPost, unlockPath, unlockBody("room", key), accept)
	if silent.HTTP != http.StatusOK || len(silent.Raw) != 0 || silent.Header.Get("Door-Request") == "" {
		t.Errorf("without a result got %d %q, want an empty stream with Door-Request", silent.HTTP, silent.Raw)
	}
}
