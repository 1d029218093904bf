package access_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/chatops"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/protocol"
)

// TestWhy brings a key into each state and compares the diagnosis with the outcome of a press, and the sentences of the key,
// of the record and of the chat with each other.
func TestWhy(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.Limits = &limit.Limiter{DB: h.db}
	a := h.agent("gangnam")
	chat := &chatops.Backend{DB: h.db, Access: h.Service}
	start := time.Now().Truncate(10 * time.Minute).Add(-30 * time.Minute)
	seen := map[access.Reason]bool{}
	check := func(key, branch, kind string, want access.Reason, actions ...access.Action) access.Diagnosis {
		t.Helper()
		d, err := h.Why(t.Context(), key, branch, kind)
		if err != nil {
			t.Fatal(err)
		}
		got := []access.Action{}
		for _, s := range d.Next {
			got = append(got, s.Action)
		}
		if d.Code != want || len(got) != len(actions) {
			t.Fatalf("got %s %v, want %s %v", d.Code, got, want, actions)
		}
		for i := range got {
			if got[i] != actions[i] {
				t.Fatalf("%s: got %v, want %v", want, got, actions)
			}
		}
		for _, language := range []string{"ko", "en"} {
			if text := d.Message(language); text == "" || strings.ContainsAny(text, "{}") {
				t.Errorf("%s: %s sentence %q", want, language, text)
			}
		}
		seen[want] = true
		return d
	}
	// same checks that staff see the same sentence in the record and in the chat.
	same := func(key string, room int, d access.Diagnosis) {
		t.Helper()
		id := one[booking.ReservationID](h, `select reservation_id from access_key where hash = sha256(convert_to($1, 'UTF8'))`, key)
		staff, err := h.WhyReservation(t.Context(), id, d.Kind)
		if err != nil || staff.Code != d.Code || staff.Message("ko") != d.Message("ko") || staff.Message("en") != d.Message("en") {
			t.Errorf("staff see %s (%v), the guest %s", staff.Message("ko"), err, d.Message("ko"))
		}
		if d.Kind != access.Room {
			return
		}
		if sentence, err := chat.Why(t.Context(), "gangnam", room); err != nil || sentence != d.Message("ko") {
			t.Errorf("the chat shows %q (%v), the guest sees %q", sentence, err, d.Message("ko"))
		}
	}
	// refused checks that a press fails, as the diagnosis says.
	refused := func(key string) {
		t.Helper()
		if _, err := h.Request(t.Context(), "gangnam", access.Room, key); err == nil {
			t.Error("a press is accepted")
		}
	}

	key := h.reserve(1)
	same(key, 1, check(key, "gangnam", access.Room, access.Openable))
	same(key, 1, check(key, "", access.Front, access.Openable))
	if got := h.await(h.Service, h.request(access.Room, key), key); got.Status != access.Success {
		t.Fatalf("openable, and the press ends with %+v", got)
	}
	a.Fail(agenttest.Faults{Outcome: protocol.Failed})
	if got := h.await(h.Service, h.request(access.Room, key), key); got.Status != access.Failed {
		t.Fatalf("press %+v", got)
	}
	same(key, 1, check(key, "gangnam", access.Room, access.DoorFailed, access.UsePIN, access.Call))
	// A later opening at the keypad shows that the door works; an attempt there, and an opening of another door, do not.
	entry := func(entry int, device, outcome string) {
		h.exec(`insert into pass_entry (username, journal, entry, branch_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
			select c.username, 'keypad', $1, c.branch_id, k.reservation_id, $2, clock_timestamp(), $3, '', 'code', '', '', now()
			from agent_credential c, access_key k where c.username = $4 and k.hash = sha256(convert_to($5, 'UTF8'))`,
			entry, device, outcome, protocol.AgentID("gangnam"), key)
	}
	entry(1, "front_1", "opened")
	entry(2, "room_1", "refused")
	same(key, 1, check(key, "gangnam", access.Room, access.DoorFailed, access.UsePIN, access.Call))
	entry(3, "room_1", "opened")
	same(key, 1, check(key, "gangnam", access.Room, access.Openable))
	h.exec(`delete from pass_entry`)
	a.Fail(agenttest.Faults{})
	h.await(h.Service, h.request(access.Room, key), key)
	same(key, 1, check(key, "gangnam", access.Room, access.Openable))
	h.exec(`insert into alert (kind, branch, subject, since) values ('reader-lockout', 'gangnam', 'room_1', now())`)
	for i, lock := range []struct {
		age, length time.Duration
		outcome     string
	}{ // the third lock-out in a row lasts four minutes, the first one after an opening one minute
		{40 * time.Minute, time.Minute, "refused"}, {30 * time.Minute, 2 * time.Minute, "refused"}, {2 * time.Minute, 4 * time.Minute, "refused"},
		{90 * time.Second, 0, "opened"}, {time.Minute - 50*time.Second, time.Minute, "refused"}, {0, 0, "unknown"},
	} {
		at := time.Now().Add(-lock.age)
		h.exec(`insert into pass_entry (username, journal, entry, branch_id, device, at, outcome, reason, source, previous, hash, received_at)
			select username, 'journal', $1, branch_id, 'room_1', $2, $3, case $3 when 'refused' then 'locked-out' else '' end, 'pin', '', '', now()
			from agent_credential where username = $4`, i+1, at, lock.outcome, protocol.AgentID("gangnam"))
		if lock.age >= lock.length {
			same(key, 1, check(key, "gangnam", access.Room, access.Openable))
			continue
		}
		d := check(key, "gangnam", access.Room, access.LockedOut, access.Wait, access.Call)
		same(key, 1, d)
		if off := d.Until.Sub(at.Add(lock.length)).Abs(); off > time.Millisecond || !d.Next[0].At.Equal(d.Until) {
			t.Errorf("locked until %v and wait until %v, want %v", d.Until, d.Next[0].At, at.Add(lock.length))
		}
	}
	if got := h.await(h.Service, h.request(access.Room, key), key); got.Status != access.Success {
		t.Errorf("a press while the keypad is locked: %+v", got)
	}
	check(key, "gangnam", access.Front, access.Openable)
	check(key, "hongdae", access.Room, access.WrongBranch, access.Call)
	for {
		if _, err := h.Request(t.Context(), "hongdae", access.Room, key); strings.Contains(err.Error(), "limit") || strings.Contains(err.Error(), "unlock") {
			break
		}
	}
	check(key, "gangnam", access.Room, access.RateLimited, access.Wait)

	for name, unknown := range map[string]string{"unknown": uuid.NewString(), "no key": "nonsense", "empty": ""} {
		if d := check(unknown, "gangnam", access.Room, access.UnknownKey, access.LogIn, access.Call); d.Branch.Code != "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
	early := h.reserveAt("gangnam", 2, start.Add(2*time.Hour), start.Add(3*time.Hour))
	d := check(early, "gangnam", access.Room, access.TooEarly, access.Wait)
	if from := start.Add(2*time.Hour - booking.UnlockLead); !d.Until.Equal(from) || !d.Next[0].At.Equal(from) {
		t.Errorf("too early until %v, wait until %v", d.Until, d.Next[0].At)
	}
	same(early, 2, d)
	refused(early)
	late := h.reserveAt("gangnam", 3, start.Add(-2*time.Hour), start.Add(-time.Hour))
	same(late, 3, check(late, "gangnam", access.Room, access.TooLate, access.LogIn, access.Call))
	refused(late)

	id := one[int64](h, `select reservation_id from access_key where hash = sha256(convert_to($1, 'UTF8'))`, key)
	state := func(sql string) { t.Helper(); h.exec(`update reservation set `+sql+` where id = $1`, id) }
	state(`keys_blocked = true`)
	same(key, 1, check(key, "gangnam", access.Room, access.NotPaid, access.Call))
	state(`keys_blocked = false, state = 'WAITING_FOR_DEPOSIT', doorlock_key = null, expires_at = now() + interval '5 minutes'`)
	same(key, 1, check(key, "gangnam", access.Room, access.NotPaid, access.Pay, access.Call))
	refused(key)
	state(`state = 'CANCELING'`)
	same(key, 1, check(key, "gangnam", access.Room, access.Canceled, access.LogIn, access.Call))
	h.exec(`insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key) values ($1, 'PENDING', 'x', 1000, 'customer', 'k')`, id)
	state(`state = 'CANCELED', canceled_at = now()`)
	same(key, 1, check(key, "gangnam", access.Room, access.Canceled, access.LogIn, access.Call))
	h.exec(`update refund set state = 'COMPLETED'`)
	same(key, 1, check(key, "gangnam", access.Room, access.Refunded, access.LogIn, access.Call))
	refused(key)

	moved := h.reserve(2)
	id = one[int64](h, `select reservation_id from access_key where hash = sha256(convert_to($1, 'UTF8'))`, moved)
	h.exec(`insert into reservation_move (reservation_id, moved_by, from_room, from_start, from_end, to_room, to_start, to_end)
		select id, 'admin:hq', 2, start_at, end_at, 2, start_at + interval '1 day', end_at + interval '1 day' from reservation where id = $1`, id)
	check(moved, "gangnam", access.Room, access.Openable) // only the room was another one
	state(`start_at = start_at + interval '1 day', end_at = end_at + interval '1 day', occupied = tstzrange(start_at + interval '1 day', end_at + interval '1 day 10 minutes')`)
	check(moved, "gangnam", access.Room, access.Moved, access.Wait, access.LogIn, access.Call)
	refused(moved)

	rotated := h.reserve(3)
	h.exec(`update reservation set doorlock_key = gen_random_uuid() where doorlock_key = $1`, rotated)
	d = check(rotated, "gangnam", access.Room, access.RotatedKey, access.OpenLink, access.LogIn, access.Call)
	if fresh := one[string](h, `select doorlock_key::text from reservation r join room m on m.id = r.room_id where m.no = 3 and r.end_at > now()`); strings.Contains(d.Message("ko")+d.Message("en"), fresh) {
		t.Error("an old key learns the new one")
	}
	refused(rotated)
	h.exec(`update access_key set revoked_as = 'corrected' where hash = sha256(convert_to($1, 'UTF8'))`, rotated)
	check(rotated, "gangnam", access.Room, access.UnknownKey, access.LogIn, access.Call)
	h.exec(`update access_key set kind = 'companion', label = 'x', revoked_as = 'revoked' where hash = sha256(convert_to($1, 'UTF8'))`, rotated)
	check(rotated, "gangnam", access.Room, access.RevokedKey, access.Call)

	away := h.reserveAt("hongdae", 1, start, start.Add(time.Hour))
	check(away, "hongdae", access.Room, access.BranchOffline, access.UsePIN, access.Call)
	h.exec(`update branch set keypads = '{"room_1": "agent", "front_1": "none"}' where code = 'hongdae'`)
	check(away, "hongdae", access.Room, access.BranchOffline, access.UseCode, access.Call)
	check(away, "hongdae", access.Front, access.BranchOffline, access.Call)
	for _, reason := range access.Reasons {
		if !seen[reason] {
			t.Errorf("%s was not tested", reason)
		}
	}
	if _, err := h.Why(t.Context(), key, "gangnam", "window"); !errors.Is(err, access.ErrUnknownDoor) {
		t.Errorf("an unknown door: %v", err)
	}
}

// BenchmarkWhyHidesWhetherAKeyExists reports the mean difference between known and unknown keys in units of its standard
// error; values beyond 3 disclose something.
func BenchmarkWhyHidesWhetherAKeyExists(b *testing.B) {
	h := build(b)
	start := time.Now().Truncate(10 * time.Minute)
	known := h.reserveAt("gangnam", 1, start, start.Add(time.Hour))
	var took [2]stats
	for b.Loop() {
		for i, key := range []string{known, uuid.NewString()} {
			began := time.Now()
			if _, err := h.Why(b.Context(), key, "gangnam", access.Room); err != nil {
				b.Fatal(err)
			}
			took[i].add(time.Since(began).Seconds())
		}
	}
	b.ReportMetric(took[0].mean()*1000, "known-ms")
	b.ReportMetric(took[1].mean()*1000, "unknown-ms")
	b.ReportMetric(distance(took[0], took[1]), "standard-errors")
}

// stats accumulates a mean and a variance.
type stats struct{ n, sum, squares float64 }

func (s *stats) add(x float64)       { s.n, s.sum, s.squares = s.n+1, s.sum+x, s.squares+x*x }
func (s stats) mean() float64        { return s.sum / s.n }
func (s stats) errorSquare() float64 { return (s.squares/s.n - s.mean()*s.mean()) / s.n }

// distance returns Welch's t of two samples.
func distance(a, b stats) float64 {
	return math.Abs(a.mean()-b.mean()) / math.Sqrt(a.errorSquare()+b.errorSquare())
}
