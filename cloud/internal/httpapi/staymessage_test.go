package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// TestMessagesOfTheStay moves the clock through a stay and counts its messages.
func TestMessagesOfTheStay(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(c *config.Settings) { c.Times.SweepEvery = 50 * time.Millisecond })
	c := newCast(t, s)
	start := c.start
	id := live(t, s, 1)
	order(t, s, s.Client(t), 2, start, time.Hour, 25000, "카드") // never paid
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set keypads = '{"room_1": "agent"}' where code = 'gangnam' and $1`, true); err != nil {
		t.Fatal(err)
	}
	sweep := func() { // two sweeps that began later
		t.Helper()
		const last = `select coalesce(max(at)::text, '') from work_success where work = 'sweep' and $1`
		for range 2 {
			before := only(t, s, last, true)
			s.Clock.Advance(time.Millisecond)
			eventually(t, "a sweep", func() bool { return only(t, s, last, true) != before })
		}
	}
	count := func(template string, want int) (last sandbox.Message) {
		t.Helper()
		sweep()
		queued := only(t, s, `select count(*)::text from message where template = $1`, template)
		eventually(t, template, func() bool {
			n := 0
			for _, m := range s.Sandbox.Messages("01012345678") {
				if m.Template == template {
					n, last = n+1, m
				}
			}
			return n == want
		})
		if n := only(t, s, `select count(*)::text from message where template = $1`, template); n != queued {
			t.Errorf("%s: %s queued, then %s", template, queued, n)
		}
		return last
	}
	s.Clock.Stop(start.Add(-61 * time.Minute))
	count("stay-reminder", 0)
	s.Clock.Stop(start.Add(-59 * time.Minute))
	if m := count("stay-reminder", 1); m.Variables["link"] == "" {
		t.Errorf("reminder %+v", m)
	}
	count("stay-pin", 0)

	// A moved stay gets new messages.
	c.HQ.Put("/admin/reservation/"+id, map[string]any{"room": "2", "startDateTime": wire(start.Add(3 * time.Hour)), "endDateTime": wire(start.Add(4 * time.Hour)), "reason": "x"}).OK(t)
	start = start.Add(3 * time.Hour)
	count("stay-reminder", 1)
	s.Clock.Stop(start.Add(-50 * time.Minute))
	count("stay-reminder", 2)
	s.Clock.Stop(start.Add(-29 * time.Minute))
	first := count("stay-pin", 1).Variables["pin"]
	c.HQ.Post("/v2/admin/reservations/"+id+"/key", map[string]string{"reason": "x"}).OK(t)
	if again := count("stay-pin", 2).Variables["pin"]; len(first) != 6 || again == first {
		t.Errorf("PIN %q, then %q", first, again)
	}
	s.Clock.Stop(start.Add(49 * time.Minute))
	count("stay-ending", 0)
	s.Clock.Stop(start.Add(51 * time.Minute))
	count("stay-ending", 1)

	// A cancelled stay gets nothing.
	next := slot(s, 3*time.Hour)
	buyer := s.Client(t)
	buyer.Post("/payment/confirm", order(t, s, buyer, 1, next, time.Hour, 30000, "카드")).OK(t)
	c.HQ.Delete("/admin/reservation/"+live(t, s, 1)+"?bookingStatus=paid", map[string]string{"reason": "테스트"}).OK(t)
	s.Clock.Stop(next.Add(-20 * time.Minute))
	count("stay-reminder", 2)
	count("stay-pin", 2)

	// The confirmation of a stay that begins soon contains the PIN.
	soon := slot(s, 20*time.Minute)
	late := s.Client(t)
	late.Post("/payment/confirm", order(t, s, late, 3, soon, time.Hour, 22000, "카드")).OK(t)
	if m := count("reservation-confirmed-pin", 1); len(m.Variables["pin"]) != 6 || m.Variables["doorlockKey"] == "" {
		t.Errorf("confirmation %+v", m)
	}
	count("stay-pin", 2)

	// A guest who has not arrived gets a message. Without an agent it is not known who has.
	s.Clock.Stop(soon.Add(16 * time.Minute))
	count("stay-not-arrived", 0)
	connectAgent(t, s, "gangnam", protocol.Inventory{})
	eventually(t, "the agent is known", func() bool {
		return only(t, s, `select count(*)::text from agent_inventory where online and $1`, true) == "1"
	})
	s.Clock.Advance(2 * time.Minute)
	if m := count("stay-not-arrived", 1); m.Variables["link"] == "" || m.Variables["endTime"] == "" {
		t.Errorf("not arrived: %+v", m)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
	}
}
