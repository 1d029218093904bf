package e2e

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReplicas uses two replicas with a common database and broker.
func TestReplicas(t *testing.T) {
	c := startCluster(t)
	guest := c.browser(t)
	key := guest[0].buy(c.stack, "gangnam", 2, 25000, "01011112222")

	t.Run("press at one, wait at the other", func(t *testing.T) {
		const presses = 40
		took := make([]time.Duration, presses)
		for n := range presses {
			ask, await := guest[n%2], guest[(n+1)%2]
			var accepted struct {
				RequestID string `json:"requestId"`
			}
			began := time.Now()
			ask.must("POST", "/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "room", "key": key}, &accepted)
			got, status := await.subscribe("/door/v2/unlock/subscribe?requestId=" + accepted.RequestID + "&key=" + key)
			took[n] = time.Since(began)
			if status != http.StatusOK || got.Status != "SUCCESS" {
				t.Fatalf("press %d: %d %+v", n, status, got)
			}
		}
		slices.Sort(took)
		t.Logf("press to result: median %s, slowest %s", took[presses/2], took[presses-1])
	})
	t.Run("a hold is valid at both", func(t *testing.T) {
		start := currentSlot().Add(24 * time.Hour)
		body := map[string]any{"branch": "gangnam", "room": 4, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}
		other := c.browser(t)
		guest[0].must("POST", "/reservation", body, nil)
		if status, errorType := other[1].call("POST", "/reservation", body, nil); status != http.StatusConflict {
			t.Fatalf("another guest at the other replica: %d %s", status, errorType)
		}
		guest[1].must("POST", "/payment", map[string]any{"amount": 20000, "name": "홍길동", "mobileNum": "01011112222"}, nil)
		guest[1].must("DELETE", "/reservation", nil, nil)
		other[0].must("POST", "/reservation", body, nil)
	})
	t.Run("a session is valid and ends at both", func(t *testing.T) {
		hq := c.browser(t)
		hq[0].must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		hq[1].must("GET", "/v2/me", nil, nil)
		hq[1].must("POST", "/admin/logout", nil, nil)
		if status, _ := hq[0].call("GET", "/v2/me", nil, nil); status != http.StatusUnauthorized {
			t.Fatalf("after logout: %d", status)
		}
	})
	t.Run("a revoked token ends at both", func(t *testing.T) { c.revokedTokens(t, 5) })
	t.Run("the broker separates agents", func(t *testing.T) {
		for _, topic := range []string{"yeolda/v1/hongdae/door/claim", "yeolda/v1/jamsil/door/grant"} {
			if c.mayPublish(t, "jamsil", topic) {
				t.Errorf("the agent of jamsil may publish to %s", topic)
			}
		}
		if !c.mayPublish(t, "jamsil", "yeolda/v1/jamsil/heartbeat") {
			t.Error("the agent of jamsil may not publish its heartbeat")
		}
		// The broker rejects the client id of another branch. Otherwise it would disconnect gangnam's agent, which would
		// not reconnect.
		c.connect(t, c.Brokers[0].Agents, "jamsil", "agent-gangnam")
		if got, _ := guest[1].open("gangnam", "room", key); got.Status != "SUCCESS" {
			t.Errorf("gangnam: %+v", got)
		}
	})
	t.Run("the one that was asked dies", func(t *testing.T) {
		var accepted struct {
			RequestID string `json:"requestId"`
		}
		guest[0].must("POST", "/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "room", "key": key}, &accepted)
		c.signal(c.Replicas[0].Process, syscall.SIGKILL)
		got, status := guest[1].subscribe("/door/v2/unlock/subscribe?requestId=" + accepted.RequestID + "&key=" + key)
		if status != http.StatusOK || got.Status == "" {
			t.Fatalf("%d %+v", status, got)
		}
		c.start(c.Replicas[0].Process)
	})
}

// TestRollingRestart restarts both replicas in turn under load.
func TestRollingRestart(t *testing.T) {
	c := startCluster(t, "YEOLDA_DRAIN_TIME=1s")
	l := c.startLoad(t)
	for range 2 {
		for _, r := range c.Replicas {
			until(t, "a door opens", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.opened) > 0 })
			l.note(func() { l.opened, l.written = nil, nil })
			began := time.Now()
			c.signal(r.Process, syscall.SIGTERM)
			t.Logf("%s ended %s after SIGTERM", r.Name, time.Since(began).Round(time.Millisecond))
			c.start(r.Process)
			l.recovers(t, time.Now(), 30*time.Second)
		}
	}
	l.verify(t)
	for _, failure := range l.failures {
		t.Errorf("failed also when tried again: %s", failure)
	}
	if n := len(l.ended); n > 0 {
		t.Errorf("%d doors were answered FAILED", n)
	}
}

// outage returns the length of the database outage. The acceptance test sets YEOLDA_TEST_OUTAGE=60s.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("YEOLDA_TEST_OUTAGE")
	if text == "" {
		return 8 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFailures kills every part of a cluster under load. No confirmed reservation may be lost, no door may be driven late,
// and everything must work again within 30 seconds. A reader of the event stream must know the final state.
func TestFailures(t *testing.T) {
	const recovery = 30 * time.Second
	c := startCluster(t)
	stream := c.follow(t)
	following, stop := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() { followed <- stream.read(following) }()
	l := c.startLoad(t)
	until(t, "a door opens", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.opened) > 3 })
	for i, r := range c.Replicas {
		t.Logf("kill -9 of replica %d", i+1)
		since := time.Now()
		c.signal(r.Process, syscall.SIGKILL)
		l.recovers(t, since, recovery)
		c.start(r.Process)
		l.recovers(t, time.Now(), recovery)
	}
	t.Log("kill -9 of Mosquitto")
	c.signal(c.Brokers[0].Process, syscall.SIGKILL)
	time.Sleep(2 * time.Second) // the fault itself
	c.start(c.Brokers[0].Process)
	l.recovers(t, time.Now(), recovery)

	away := outage(t)
	t.Logf("kill -9 of PostgreSQL, for %s", away)
	c.signal(c.Postgres, syscall.SIGKILL)
	time.Sleep(away) // the fault itself
	c.start(c.Postgres)
	l.recovers(t, time.Now(), recovery)
	for _, r := range c.Replicas {
		if !r.Alive() {
			t.Errorf("%s ended with the database", r.Name)
		}
	}
	l.verify(t)
	stop()
	if err := <-followed; err != nil {
		t.Error(err)
	}
	stream.compare(t)
	if first := strings.Join(l.failures[:min(3, len(l.failures))], "\n"); first != "" {
		t.Logf("among the failures:\n%s", first)
	}
}
