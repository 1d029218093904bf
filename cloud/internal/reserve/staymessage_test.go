package reserve_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestEndOfAShortStay: a stay of ten minutes is announced to end at its start, with the offer to extend it. One that was bought after that
// is not, because the text would be wrong and the confirmation has the end.
func TestEndOfAShortStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		paid time.Duration // after the start
		want int
	}{
		"bought before": {-time.Hour, 1}, "bought within": {2 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, _, id := s.paid(t, sandbox.MethodCard)
			s.exec(t, `
				update reservation set end_at = start_at + interval '10 minutes', occupied = tstzrange(start_at, start_at + interval '20 minutes'),
				       paid_at = start_at + $2::interval where id = $1`, id, c.paid)
			s.Clock.Advance(s.start(t, id).Add(3 * time.Minute).Sub(s.Clock.Now()))
			if err := s.Replica(t).SweepStays(s.ctx); err != nil {
				t.Fatal(err)
			}
			if n := s.count(t, `select count(*) from stay_message where template = 'stay-ending' and reservation_id = $1`, id); n != c.want {
				t.Errorf("%d messages, want %d", n, c.want)
			}
		})
	}
}

// TestReminderBeforeALongTurnover: the reminder of the longest stay comes an hour before it, however long its room stays empty afterwards.
func TestReminderBeforeALongTurnover(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, _, id := s.paid(t, sandbox.MethodCard)
	s.exec(t, `update room set turnover_minutes = 60 where id = (select room_id from reservation where id = $1)`, id)
	s.exec(t, `update reservation set end_at = start_at + interval '5 hours' where id = $1`, id)
	if n := s.count(t, `select count(*) from reservation where id = $1 and upper(occupied) = start_at + interval '6 hours'`, id); n != 1 {
		t.Fatal("the room does not stay empty for an hour after the stay")
	}
	s.Clock.Advance(s.start(t, id).Add(-59 * time.Minute).Sub(s.Clock.Now()))
	if err := s.Replica(t).SweepStays(s.ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, `select count(*) from stay_message where template = 'stay-reminder' and reservation_id = $1`, id); n != 1 {
		t.Errorf("%d reminders, want 1", n)
	}
}

// TestEndOfAStayThatWasEnded: the guest who ends a stay leaves, so no message announces its end or offers an extension, and neither does one
// if staff set the end within the ten minutes. A stay that staff have shortened before that is announced to end.
func TestEndOfAStayThatWasEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(s *shop, g guest) error
		want int
	}{
		"by the guest": {func(s *shop, g guest) error {
			_, err := s.Replica(t).EndStay(s.ctx, booking.ReservationID(g.id))
			return err
		}, 0},
		"by staff at once": {func(s *shop, g guest) error { return s.shorten(t, g, 40*time.Minute) }, 0},
		"by staff later":   {func(s *shop, g guest) error { return s.shorten(t, g, 50*time.Minute) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.guest(t, sandbox.MethodCard)
			s.Clock.Stop(g.wish.Start.Add(33 * time.Minute))
			if err := c.end(s, g); err != nil {
				t.Fatal(err)
			}
			s.exec(t, `update reservation_move set at = $1`, s.Clock.Now()) // it has the clock of the database
			s.Clock.Stop(s.Clock.Now().Add(8 * time.Minute))
			if c.want == 0 {
				s.Clock.Stop(g.wish.Start.Add(38 * time.Minute))
			}
			if err := s.Replica(t).SweepStays(s.ctx); err != nil {
				t.Fatal(err)
			}
			if n := s.count(t, `select count(*) from stay_message where template = 'stay-ending' and reservation_id = $1`, g.id); n != c.want {
				t.Errorf("%d messages, want %d", n, c.want)
			}
		})
	}
}

// shorten has staff end a stay some time after its start.
func (s *shop) shorten(t *testing.T, g guest, to time.Duration) error {
	t.Helper()
	return s.Replica(t).Move(s.ctx, reserve.MoveRequest{
		ID: booking.ReservationID(g.id), Room: g.wish.Room, Times: local(g.wish.Start, g.wish.Start.Add(to)), By: hq,
	})
}
