package events_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/events"
)

// Events that the receiver refuses delay only those of their subjects, and are repeated at their own times.
func TestRefusedEventsDelayNoOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.add(events.NewWebhook{Types: []string{"reservation"}})
	refused := map[string]bool{}
	f.respond(func(e events.Event) int {
		if len(refused) < 3 {
			refused[e.Subject] = true
		}
		if refused[e.Subject] {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	f.reserve(200)
	f.pass(id, 0)
	if want := 3 * (200 - 3); len(f.received) != want {
		t.Errorf("%d events were delivered, want %d", len(f.received), want)
	}
	for range 12 {
		f.pass(id, time.Minute)
	}
	if n := f.count(`select max(attempts) from webhook_delivery where delivered_at is null`); n != 4 { // after 0, 1, 2 and 4 minutes, next after 14
		t.Errorf("%d attempts in 12 minutes", n)
	}
}

// A replay from a place that the webhook has not reached yet skips nothing that waits.
func TestReplayAheadSkipsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.add(events.NewWebhook{Types: []string{"reservation"}})
	if err := f.Enable(t.Context(), id, false, "test"); err != nil {
		t.Fatal(err)
	}
	f.reserve(30)
	f.pass(id, 0)
	head := f.count(`select place from event_head`)
	if err := f.Enable(t.Context(), id, true, "test"); err != nil {
		t.Fatal(err)
	}
	if err := f.Replay(t.Context(), id, int64(head-10), "test"); err != nil {
		t.Fatal(err)
	}
	f.pass(id, 0)
	if len(f.received) != 90 {
		t.Errorf("%d of 90 events were delivered", len(f.received))
	}
}
