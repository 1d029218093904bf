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

// A thousand events of subjects that the receiver refuses do not keep those of others from being delivered; ten thousand do.
func TestManyRefusedEventsBlockNoOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.add(events.NewWebhook{Types: []string{"reservation"}})
	f.respond(func(e events.Event) int {
		if *e.Branch == "gangnam" {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	f.reserve(400)
	other := func(hour int) {
		f.exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at)
			select branch_id, id, 'HOLD', 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '1 hour'), at
			from room, (select timestamptz '2026-12-01' + make_interval(hours => $1) as at) h where branch_id = 2`, hour)
	}
	f.exec(`insert into room (branch_id, no) values (2, 1)`)
	other(1)
	f.pass(id, 0)
	if len(f.received) != 1 {
		t.Errorf("%d events were delivered, want 1", len(f.received))
	}
	f.exec(`insert into webhook_delivery (webhook_id, place, type, subject, body, next_at, attempts)
		select id, -i, 'reservation.done', 'reservation:' || -i, '', 'infinity', 1 from webhook, generate_series(1, 10000) i`)
	other(4)
	f.pass(id, 0)
	if len(f.received) != 1 {
		t.Errorf("%d events were delivered although too many wait, want 1", len(f.received))
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
