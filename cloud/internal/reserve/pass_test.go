package reserve_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// pin returns the PIN of a reservation's pass; empty if it has none.
func (s *shop) pin(t *testing.T, id int64) string {
	t.Helper()
	p, err := postgres.PassOf(s.ctx, s.DB.Pool, booking.ReservationID(id))
	if errors.Is(err, postgres.ErrNoPass) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	keys, err := s.Settings.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := keys.Open(postgres.PassPINPurpose, p.PIN)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// listed records that the agent of gangnam may hold the pass of a reservation.
func (s *shop) listed(t *testing.T, id int64) {
	t.Helper()
	s.exec(t, `
		insert into pass_listed (username, epoch, version, pass_id, room_id, not_before, not_after)
		select 'agent-gangnam', 1, reservation_id, id, room_id, not_before, not_after from pass where reservation_id = $1 and ended_at is null`, id)
}

// local returns a time as an administrator types it.
func local(start, end time.Time) booking.LocalInterval {
	wall := func(t time.Time) time.Time { return t.UTC().Add(9 * time.Hour) } // Asia/Seoul
	return booking.LocalInterval{Start: wall(start), End: wall(end)}
}

func (s *shop) quarantines(t *testing.T) []postgres.Quarantine {
	t.Helper()
	branch, err := s.DB.Branch(s.ctx, "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	found, err := postgres.Quarantines(s.ctx, s.DB.Pool, branch.ID, s.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// blocks returns the number of partners that may not sell the time of a reservation.
func (s *shop) blocks(t *testing.T, id booking.ReservationID) int {
	t.Helper()
	return s.count(t, `select count(*) from channel_block where reservation_id = $1 and state in ('WANTED', 'PLACED')`, int64(id))
}

// TestPassFollowsReservation expects a pass from the confirmation to the end of the right it stands for, and another PIN
// after a move.
func TestPassFollowsReservation(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	b, _, id := s.paid(t, sandbox.MethodCard)
	first := s.pin(t, id)
	if len(first) != 6 || postgres.TrivialPIN(first) {
		t.Fatalf("PIN of a confirmed reservation: got %q, want six digits", first)
	}
	r, err := postgres.Reservation(s.ctx, s.DB.Pool, booking.ReservationID(id))
	if err != nil {
		t.Fatal(err)
	}
	pass, err := postgres.PassOf(s.ctx, s.DB.Pool, r.ID)
	if from, until := r.UnlockWindow(); err != nil || !pass.NotBefore.Equal(from) || !pass.NotAfter.Equal(until) || pass.Room != r.Room {
		t.Errorf("pass %+v, %v; want the window of the key, %s to %s", pass, err, from, until)
	}
	move := func(start time.Time, length time.Duration) {
		t.Helper()
		err := replica.Move(s.ctx, reserve.MoveRequest{ID: r.ID, Room: r.RoomNo, Times: local(start, start.Add(length)), By: hq})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, length := range []time.Duration{80 * time.Minute, 50 * time.Minute, time.Hour} { // the guest may be at the door with the PIN
		move(r.Start, length)
		pass, err := postgres.PassOf(s.ctx, s.DB.Pool, r.ID)
		if err != nil || s.pin(t, id) != first || !pass.NotAfter.Equal(r.Start.Add(length-booking.UnlockLead)) {
			t.Errorf("after %s: PIN %q until %s, %v; want %q until two minutes before the end", length, s.pin(t, id), pass.NotAfter, err, first)
		}
	}
	move(r.Start.Add(10*time.Minute), time.Hour)
	second := s.pin(t, id)
	if second == "" || second == first {
		t.Errorf("PIN after a move: got %q, before it %q", second, first)
	}
	if n := s.count(t, `select count(*) from pass where reservation_id = $1 and ended_at is not null`, id); n != 1 {
		t.Errorf("ended passes: got %d, want 1", n)
	}
	if found := s.quarantines(t); len(found) != 0 {
		t.Errorf("quarantine without an agent that holds a pass: %+v", found)
	}
	s.listed(t, id)
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	if pin := s.pin(t, id); pin != "" {
		t.Errorf("PIN after the cancellation: got %q, want none", pin)
	}
	if found := s.quarantines(t); len(found) != 0 {
		t.Errorf("quarantine after the guest's own cancellation: %+v", found)
	}
}

// TestQuarantineIsNotSold cancels and moves reservations while an agent may hold their passes: their time is not sold until
// the headquarters release it or the pass ends.
func TestQuarantineIsNotSold(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	_, order, w := s.bought(t, sandbox.MethodCard)
	id := s.wantState(t, order.OrderID, "DONE")
	s.listed(t, id)
	if err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(id), Status: "paid", By: hq}); err != nil {
		t.Fatal(err)
	}
	s.await(t, order.OrderID, "CANCELED")
	found := s.quarantines(t)
	if len(found) != 1 || found[0].Reason != "canceled" || found[0].RoomNo != w.Room || !found[0].Start.Equal(w.Start) ||
		!found[0].End.Equal(w.Start.Add(time.Hour)) || found[0].Reservation != booking.ReservationID(id) {
		t.Fatalf("quarantine after staff cancelled: %+v", found)
	}
	s.nothingHeld(t) // the money does not wait
	if n, want := s.blocks(t, found[0].ID), s.count(t, `select count(*) from channel_listing l join room m on m.id = l.room_id join branch b on b.id = m.branch_id
		where b.code = 'gangnam' and m.no = $1 and l.enabled and l.channel = 'gateway'`, w.Room); n != want || n == 0 {
		t.Errorf("%d partners are asked not to sell the time, want %d", n, want)
	}
	other := s.buyer()
	sold := func() int {
		reply, err := other.Post(s.ctx, "/reservation", map[string]any{"branch": "gangnam", "room": w.Room,
			"startDateTime": moneytest.Wire(w.Start), "endDateTime": moneytest.Wire(w.Start.Add(time.Hour))})
		if err != nil {
			t.Fatal(err)
		}
		return reply.HTTP
	}
	if status := sold(); status != http.StatusConflict {
		t.Errorf("hold of a time in quarantine: got %d, want 409", status)
	}
	if err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: found[0].ID, Status: "beforePaymentTab", By: hq}); !errors.Is(err, reserve.ErrQuarantine) {
		t.Errorf("cancellation of a quarantine: got %v, want ErrQuarantine", err)
	}
	// The pass ends two minutes before the stay would have: from then on nothing is in quarantine.
	s.Clock.Advance(w.Start.Add(58 * time.Minute).Sub(s.Clock.Now()))
	if found := s.quarantines(t); len(found) != 0 {
		t.Errorf("quarantine after the end of the pass: %+v", found)
	}
}

// TestMoveQuarantinesOnlyTheTimeItLeaves moves a stay by half an hour within its room.
func TestMoveQuarantinesOnlyTheTimeItLeaves(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	_, order, w := s.bought(t, sandbox.MethodCard)
	id := s.wantState(t, order.OrderID, "DONE")
	s.listed(t, id)
	later := w.Start.Add(30 * time.Minute)
	err := replica.Move(s.ctx, reserve.MoveRequest{ID: booking.ReservationID(id), Room: w.Room, Times: local(later, later.Add(time.Hour)), By: hq})
	if err != nil {
		t.Fatal(err)
	}
	found := s.quarantines(t)
	// The margin of ten minutes before the new start is the reservation's own.
	if len(found) != 1 || found[0].Reason != "moved" || !found[0].Start.Equal(w.Start) || !found[0].End.Equal(w.Start.Add(20*time.Minute)) {
		t.Fatalf("quarantine: %+v, want %s and 20 minutes", found, w.Start)
	}
	branch, err := s.DB.Branch(s.ctx, "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	release := func() error {
		return s.DB.InTx(s.ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
			return postgres.ReleaseQuarantine(ctx, tx, branch.ID, found[0].ID, "현장 확인", now)
		})
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := release(); !errors.Is(err, postgres.ErrNoQuarantine) {
		t.Errorf("second release: got %v, want ErrNoQuarantine", err)
	}
	if found := s.quarantines(t); len(found) != 0 {
		t.Errorf("quarantine after its release: %+v", found)
	}
}

// TestStaffMoveThereAndBackDuringAnOutage: the agent holds the pass of a stay and is offline, and staff move the stay away and back. The
// quarantine of the time that it has left is no other guest; one that reaches beyond the new time remains.
func TestStaffMoveThereAndBackDuringAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		room       int // 0: its own
		away, back time.Duration
		taken      bool // the way back
	}{
		"to another room and back": {room: 6},
		"away and back":            {away: 2 * time.Hour},
		"half an hour and back":    {away: 30 * time.Minute},
		"away and halfway back":    {away: 2 * time.Hour, back: 30 * time.Minute, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.guest(t, sandbox.MethodCard)
			if c.room == g.wish.Room {
				c.room--
			}
			s.listed(t, g.id)
			move := func(room int, by time.Duration) error {
				start := g.wish.Start.Add(by)
				return s.Replica(t).Move(s.ctx, reserve.MoveRequest{ID: booking.ReservationID(g.id), Room: room, Times: local(start, start.Add(time.Hour)), By: hq})
			}
			if err := move(cmp.Or(c.room, g.wish.Room), c.away); err != nil {
				t.Fatal(err)
			}
			for range 2 { // away and back again, so that the time it returns to is in quarantine once more
				if n := len(s.quarantines(t)); n != 1 {
					t.Fatalf("%d quarantines, want that of the first time", n)
				}
				err := move(g.wish.Room, c.back)
				if c.taken {
					if !errors.Is(err, reserve.ErrTaken) && !errors.Is(err, reserve.ErrHeld) {
						t.Errorf("back: %v, want a conflict", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if found := s.quarantines(t); len(found) != 0 {
					t.Errorf("quarantine of the time of the stay: %+v", found)
				}
				if got := s.start(t, g.id); !got.Equal(g.wish.Start) || s.key(t, g.id) != g.key {
					t.Errorf("it begins at %v with another key, want %v", got, g.wish.Start)
				}
				if err := move(cmp.Or(c.room, g.wish.Room), c.away); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestQuarantineOutlivesAChangeByTheGuest: staff move a stay after its PIN was disclosed, while the agent is offline, and then the guest
// changes or cancels the stay. The time that the disclosed PIN opens is not sold; the time that the guest frees is.
func TestQuarantineOutlivesAChangeByTheGuest(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]func(*testing.T, *shop, guest, time.Time){
		"exchange": func(t *testing.T, s *shop, g guest, moved time.Time) {
			later := moved.Add(24 * time.Hour)
			reply := s.answer(t, g.Buyer, g.exchangePath(), g.exchange(g.wish.Room, later, later.Add(time.Hour)), 200, "")
			if !decode[exchanged](t, reply.Data).Moved {
				t.Fatalf("exchange: %s", reply.Data)
			}
		},
		"cancellation": func(t *testing.T, s *shop, g guest, _ time.Time) {
			s.answer(t, g.Buyer, "/payment/cancel", map[string]any{"id": g.id, "cancelReason": "변심"}, 200, "")
			s.await(t, g.order.OrderID, "CANCELED")
		},
		"cancellation without a refund": func(t *testing.T, s *shop, g guest, _ time.Time) {
			s.exec(t, `update reservation set refund_policy = $2 where id = $1`, g.id, `[{"untilMinutesBefore":30,"percent":0}]`)
			s.answer(t, g.Buyer, "/payment/cancel", map[string]any{"id": g.id, "cancelReason": "변심"}, 200, "")
			s.wantState(t, g.order.OrderID, "CANCELED")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.loggedIn(t, sandbox.MethodCard)
			s.listed(t, g.id)
			s.Clock.Advance(g.wish.Start.Add(-20 * time.Minute).Sub(s.Clock.Now()))
			moved := g.wish.Start.Add(50 * time.Minute)
			err := s.Replica(t).Move(s.ctx, reserve.MoveRequest{ID: booking.ReservationID(g.id), Room: g.wish.Room, Times: local(moved, moved.Add(time.Hour)), By: hq})
			if err != nil {
				t.Fatal(err)
			}
			s.listed(t, g.id)
			free(t, s, g, moved)
			var blocked []booking.Interval
			for _, q := range s.quarantines(t) {
				blocked = append(blocked, q.Interval)
			}
			slices.SortFunc(blocked, func(a, b booking.Interval) int { return a.Start.Compare(b.Start) })
			// The move left the time up to the margin of the new start; the rest of the disclosed window is freed by the guest.
			if len(blocked) != 2 || !blocked[0].Start.Equal(g.wish.Start) || !blocked[1].End.After(g.end().Add(-3*time.Minute)) {
				t.Errorf("in quarantine: %v, want the window of the disclosed PIN, %s to %s", blocked, g.wish.Start, g.end())
			}
		})
	}
}

// TestCancellationByTheGuestNeedsNoQuarantine: the PIN is not disclosed yet, whatever the refund policy returns, for the extensions, too.
func TestCancellationByTheGuestNeedsNoQuarantine(t *testing.T) {
	t.Parallel()
	for _, percent := range []string{"100", "50", "0"} {
		t.Run(percent, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":30,"percent":`+percent+`}]`)
			g := s.loggedIn(t, sandbox.MethodCard)
			if percent != "0" {
				g.extend(t, s, g.end().Add(time.Hour))
			}
			s.listed(t, g.id)
			s.answer(t, g.Buyer, "/payment/cancel", map[string]any{"id": g.id, "cancelReason": "변심"}, 200, "")
			s.await(t, g.order.OrderID, "CANCELED")
			s.eventually(t, "the end of the stay", func() bool {
				return s.count(t, `select count(*) from reservation where (id = $1 or extends = $1) and state in ('DONE', 'CANCELING')`, g.id) == 0
			})
			if found := s.quarantines(t); len(found) != 0 {
				t.Errorf("quarantine after the guest's own cancellation: %+v", found)
			}
			if n := s.count(t, `select count(*) from channel_block b join reservation r on r.id = b.reservation_id where r.quarantine_of is not null`); n != 0 {
				t.Errorf("%d blocks at partners for the time that is free", n)
			}
		})
	}
}
