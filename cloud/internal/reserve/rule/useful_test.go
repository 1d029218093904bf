package rule_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestUseful checks how much of a stay must be left: 10 minutes, or half of a shorter stay.
func TestUseful(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		length, left time.Duration
		bought       time.Duration // ago; 0: before the stay
		want         bool
	}{
		{"10 minutes of an hour", time.Hour, 10 * time.Minute, 0, true},
		{"less of an hour", time.Hour, 10*time.Minute - time.Nanosecond, 0, false},
		{"half of 10 minutes", 10 * time.Minute, 5 * time.Minute, 0, true},
		{"less of 10 minutes", 10 * time.Minute, 5*time.Minute - time.Nanosecond, 0, false},
		{"half of the 12 minutes that were bought", time.Hour, 6 * time.Minute, 6 * time.Minute, true},
		{"less of the 12 minutes that were bought", time.Hour, 6*time.Minute - time.Nanosecond, 6*time.Minute + time.Nanosecond, false},
		{"3 minutes that were bought now", time.Hour, 3 * time.Minute, time.Nanosecond, true},
		{"2 minutes, when doors do not open any more", time.Hour, booking.UnlockLead, time.Nanosecond, false},
	} {
		s := snapshot(booking.Expired, nil)
		s.Reservation.Interval = booking.Interval{Start: now.Add(c.left - c.length), End: now.Add(c.left)}
		if c.bought != 0 {
			s.Payment.AttemptedAt = now.Add(-c.bought)
		}
		if got := s.Useful(now); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestObsolete checks when a reservation has lost the stay that it extends or replaces.
func TestObsolete(t *testing.T) {
	t.Parallel()
	start := now.Add(time.Hour) // of an extension, an hour after that of its stay
	anchor := func(state booking.State, room booking.RoomID, end time.Time) booking.Reservation {
		return booking.Reservation{State: state, Room: room, Interval: booking.Interval{Start: now, End: end}}
	}
	for _, c := range []struct {
		name              string
		extends, replaces booking.ReservationID
		anchor            booking.Reservation
		now               time.Time
		change            func(*rule.Snapshot)
		want              bool
	}{
		{"neither", 0, 0, booking.Reservation{}, now, nil, false},
		{"an extension", 1, 0, anchor(booking.Done, 1, start), now, nil, false},
		{"the stay is canceled", 1, 0, anchor(booking.Canceling, 1, start), now, nil, true},
		{"the stay has moved to another room", 1, 0, anchor(booking.Done, 2, start), now, nil, true},
		{"the stay ends earlier", 1, 0, anchor(booking.Done, 1, start.Add(-time.Minute)), now, nil, true},
		{"the stay may end later again", 1, 0, anchor(booking.Done, 1, start.Add(-time.Minute)), now, func(s *rule.Snapshot) { s.Doubted = true }, false},
		{"an extension, and the stay has begun", 1, 0, anchor(booking.Done, 1, start), now.Add(time.Minute), nil, false},
		{"an exchange", 0, 1, anchor(booking.Done, 2, start), now.Add(-time.Nanosecond), nil, false},
		{"the stay to be replaced begins now", 0, 1, anchor(booking.Done, 2, start), now, nil, true},
		{"the stay to be replaced was canceled before", 0, 1, anchor(booking.Canceled, 2, start), now, nil, false},
		{"exchanged", 0, 0, booking.Reservation{}, now, func(s *rule.Snapshot) { s.Exchanged = true }, true},
	} {
		s := snapshot(booking.Expired, nil)
		s.Reservation.Extends, s.Reservation.Replaces, s.Anchor = c.extends, c.replaces, c.anchor
		if c.change != nil {
			c.change(&s)
		}
		if got := s.Obsolete(c.now); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestLateDeposit checks that a deposit confirms a stay without much use if it arrives before it is due, while doors open.
func TestLateDeposit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		left, due time.Duration
		exchanged bool
		want      rule.Step
	}{
		{"a useful stay, overdue", 10 * time.Minute, -time.Hour, false, rule.Confirm},
		{"in time to the moment", 5 * time.Minute, 0, false, rule.Confirm},
		{"overdue", 5 * time.Minute, -time.Nanosecond, false, rule.Late},
		{"before the last unlock", booking.UnlockLead + time.Nanosecond, 0, false, rule.Confirm},
		{"at the last unlock", booking.UnlockLead, 0, false, rule.Late},
		{"in time for an exchanged stay", 5 * time.Minute, 0, true, rule.Late},
	} {
		s := snapshot(booking.WaitingForDeposit, nil)
		s.Reservation.Interval = booking.Interval{Start: now.Add(c.left - time.Hour), End: now.Add(c.left)}
		s.Reservation.ExpiresAt, s.Exchanged = now.Add(c.due), c.exchanged
		if got := s.After(rule.Answer{Payment: paid(toss.StatusDone, 12000)}, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestLateBy checks the reason that the guest and the books receive for the refund of late money.
func TestLateBy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		state booking.State
		order money.Order
		at    time.Time
		want  string
	}{
		{"the slot is taken", booking.Expired, money.Order{}, now, rule.ByLate},
		{"the stay is over", booking.Expired, money.Order{}, now.Add(2 * time.Hour), rule.ByTooLate},
		{"the stay was canceled, and is over", booking.Canceled, money.Order{}, now.Add(2 * time.Hour), rule.ByLate},
		{"the guest left, and the stay is over", booking.Expired, money.Order{AbandonedAt: now}, now.Add(2 * time.Hour), rule.ByAbandoned},
		{"the guest has replaced the order", booking.Expired, money.Order{ReplacedAt: now}, now, rule.ByAbandoned},
	} {
		s := snapshot(c.state, nil)
		s.Order = c.order
		if got := s.LateBy(c.at); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestSessionOver checks that no charge is expected from the end of the payment session on.
func TestSessionOver(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration]bool{rule.SessionLimit - time.Nanosecond: false, rule.SessionLimit: true} {
		if got := (rule.Snapshot{Payment: money.Payment{AttemptedAt: now.Add(-ago)}}).SessionOver(now); got != want {
			t.Errorf("%v after the attempt: got %v, want %v", ago, got, want)
		}
	}
}
