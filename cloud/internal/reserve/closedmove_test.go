package reserve_test

import (
	"errors"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// closes closes the branch on the day of a time and on the next one.
func (s *shop) closes(t *testing.T, at time.Time) {
	t.Helper()
	branch, err := s.DB.Branch(s.ctx, "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	day := booking.DateOf(at, branch.Zone)
	branch.Schedule = branch.Schedule.WithClosures([]booking.Closure{{From: day, To: day.AddDays(1), Reason: "공사"}})
	if err := postgres.EditBranch(s.ctx, s.DB.Pool, branch); err != nil {
		t.Fatal(err)
	}
}

// TestExpiredHoldOfAClosedDay: a closure does not list a hold that has expired. Its time is not taken again for a payment.
func TestExpiredHoldOfAClosedDay(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.order(t, sandbox.MethodCard)
	s.exec(t, `update reservation set expires_at = now() - interval '1 minute' where order_id = $1`, order.OrderID)
	s.closes(t, w.Start)
	s.neverAsked(t, b, order, 401, "ResourceTimeOutException")
}

// TestStayOfAClosedDayIsMoved: a closure keeps the stays of its day. Staff may move one to another room, or let it end earlier, but not to
// a time that is closed.
func TestStayOfAClosedDayIsMoved(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.guest(t, sandbox.MethodCard)
	s.closes(t, g.wish.Start)
	other, replica := g.wish.Room%6+1, s.Replica(t)
	move := func(room int, start, end time.Time) error {
		return replica.Move(s.ctx, reserve.MoveRequest{ID: booking.ReservationID(g.id), Room: room, Times: local(start, end), By: hq})
	}
	if err := move(other, g.wish.Start.Add(time.Hour), g.end().Add(time.Hour)); !errors.Is(err, booking.ErrClosed) {
		t.Errorf("to a closed time: %v, want %v", err, booking.ErrClosed)
	}
	if err := move(other, g.wish.Start, g.end()); err != nil {
		t.Errorf("to another room: %v", err)
	}
	if err := move(other, g.wish.Start, g.end().Add(-20*time.Minute)); err != nil {
		t.Errorf("to an earlier end: %v", err)
	}
}
