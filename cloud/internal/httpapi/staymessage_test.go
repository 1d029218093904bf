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
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set keypads = '{"room_1": "agent"}' where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	sweep := func() { // two sweeps that began later
		t.Helper()
		const last = `select coalesce(max(at)::text, '') from work_success where work = 'sweep'`
		for range 2 {
			before := only(t, s, last)
			s.Clock.Advance(time.Millisecond)
			eventually(t, "a sweep", func() bool { return only(t, s, last) != before })
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
	count("stay-pin", 0) // only the door of another room has a keypad that takes it
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set keypads = '{"room_1": "agent", "room_2": "agent"}' where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	pin := count("stay-pin", 1)
	first := pin.Variables["pin"]
	if pin.Variables["doors"] != "룸 문" {
		t.Errorf("the PIN opens %q, want the door of the room only", pin.Variables["doors"])
	}
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
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set keypads = '{"front_1": "agent"}' where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	late.Post("/payment/confirm", order(t, s, late, 3, soon, time.Hour, 22000, "카드")).OK(t)
	if m := count("reservation-confirmed-pin", 1); len(m.Variables["pin"]) != 6 || m.Variables["doorlockKey"] == "" || m.Variables["doors"] != "현관문" {
		t.Errorf("confirmation %+v", m)
	}
	count("stay-pin", 2)

	// A guest who has not arrived gets a message. Without an agent it is not known who has.
	s.Clock.Stop(soon.Add(16 * time.Minute))
	count("stay-not-arrived", 0)
	connectAgent(t, s, "gangnam", protocol.Inventory{})
	eventually(t, "the agent is known", func() bool {
		return only(t, s, `select count(*)::text from agent_inventory where online`) == "1"
	})
	s.Clock.Advance(2 * time.Minute)
	if m := count("stay-not-arrived", 1); m.Variables["link"] == "" || m.Variables["endTime"] != wire(soon.Add(58 * time.Minute))[8:10]+":"+wire(soon.Add(58 * time.Minute))[10:] {
		t.Errorf("not arrived: %+v, want until two minutes before the end of %v", m, soon.Add(time.Hour))
	}
}

// TestDoorFailedMessage has a press fail in two stays. Only the guest whom nothing shows to have entered receives a message.
func TestDoorFailedMessage(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(c *config.Settings) { c.Times.SweepEvery = 50 * time.Millisecond })
	start := slot(s, 20*time.Minute) // the current slot may end before it is held
	for room := 1; room <= 2; room++ {
		buyer := s.Client(t)
		buyer.Post("/payment/confirm", order(t, s, buyer, room, start, time.Hour, []int{30000, 25000}[room-1], "카드")).OK(t)
	}
	s.Clock.Stop(start.Add(time.Minute))
	_, err := s.DB.Pool.Exec(t.Context(), `
		with pressed as (
			insert into door_request (id, branch_id, requested_by, kind, device, devices, created_at, state, finished_at, reservation_id)
			select gen_random_uuid(), r.branch_id, 'key', 'room', 'room_' || m.no, array['room_' || m.no], clock_timestamp() - interval '1 minute',
			       'FAILED', clock_timestamp() - interval '50 seconds', r.id
			from reservation r join room m on m.id = r.room_id where r.state = 'DONE'
			returning branch_id, reservation_id, device
		)
		insert into pass_entry (username, journal, entry, branch_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
		select c.username, 'journal', 1, p.branch_id, p.reservation_id, p.device, clock_timestamp() - interval '40 seconds', 'opened', '', 'code', '', '', now()
		from pressed p join agent_credential c on c.branch_id = p.branch_id where p.device = 'room_2' limit 1`)
	if err != nil {
		t.Fatal(err)
	}
	rooms := func() string {
		return only(t, s, `
			select coalesce(string_agg(o.no::text, ' ' order by o.no), '') from message m join reservation r on r.id = m.reservation_id
			join room o on o.id = r.room_id where m.template = 'stay-door-failed'`)
	}
	eventually(t, "a message", func() bool { return rooms() != "" })
	if got := rooms(); got != "1" {
		t.Errorf("messages to the guests of the rooms %q, want 1: the guest of room 2 has entered with a code", got)
	}
}

// TestLateMessagesOfTheStay cancels one stay and moves another while their reminders wait for the provider: only the guest of the
// third receives a reminder.
func TestLateMessagesOfTheStay(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(c *config.Settings) { c.Times.SweepEvery = 50 * time.Millisecond })
	c := newCast(t, s)
	for room := 2; room <= 3; room++ {
		buyer := s.Client(t)
		buyer.Post("/payment/confirm", order(t, s, buyer, room, c.start, time.Hour, []int{25000, 22000}[room-2], "카드")).OK(t)
	}
	waiting := func(where string) func() bool {
		return func() bool {
			return only(t, s, `select (count(*) = 3)::text from message where template = 'stay-reminder' and `+where) == "true"
		}
	}
	eventually(t, "the confirmations are sent", func() bool {
		return only(t, s, `select count(*)::text from message where state in ('QUEUED', 'SENDING')`) == "0"
	})
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetMessages, Kind: sandbox.FaultError, Status: 503, Times: -1}); err != nil {
		t.Fatal(err)
	}
	s.Clock.Stop(c.start.Add(-59 * time.Minute))
	eventually(t, "the reminders wait", waiting(`state = 'QUEUED' and attempt > 0`))
	c.HQ.Delete("/admin/reservation/"+live(t, s, 1)+"?bookingStatus=paid", map[string]string{"reason": "테스트"}).OK(t)
	c.HQ.Put("/admin/reservation/"+live(t, s, 2), map[string]any{
		"room": "2", "startDateTime": wire(c.start.Add(3 * time.Hour)), "endDateTime": wire(c.start.Add(4 * time.Hour)), "reason": "x"}).OK(t)
	s.Sandbox.ClearFaults()
	s.Clock.Advance(10 * time.Minute)
	eventually(t, "the reminders have ended", waiting(`state in ('SENT', 'FAILED')`))
	received := 0
	for _, m := range s.Sandbox.Messages("") {
		if m.Template == "stay-reminder" {
			received++
		}
	}
	sent := only(t, s, `select string_agg(reservation_id::text, ' ') from message where template = 'stay-reminder' and state = 'SENT'`)
	if received != 1 || sent != live(t, s, 3) {
		t.Errorf("%d reminders received; sent to reservations %s, want %s", received, sent, live(t, s, 3))
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
	}
}
