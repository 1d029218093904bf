package booking_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

var allStates = []booking.State{
	booking.Hold, booking.Confirming, booking.WaitingForDeposit, booking.Done,
	booking.Canceling, booking.Canceled, booking.Expired, booking.Released, booking.Conflict,
}

func TestCanUnlock(t *testing.T) {
	t.Parallel()
	for _, days := range []struct{ name, start, end string }{
		{"afternoon", "2026-11-21 15:00", "2026-11-21 16:00"},
		{"one slot", "2026-11-21 15:00", "2026-11-21 15:10"},
		{"from midnight", "2026-12-01 00:00", "2026-12-01 01:00"},
		{"to midnight", "2026-11-30 23:00", "2026-12-01 00:00"},
		{"over the end of the year", "2026-12-31 23:50", "2027-01-01 00:10"},
		{"out of a leap day", "2028-02-29 23:50", "2028-03-01 00:10"},
		{"night of a change of clocks", "2026-11-01 00:30", "2026-11-01 03:30"},
	} {
		t.Run(days.name, func(t *testing.T) {
			inZones(t, func(t *testing.T, zone *time.Location) {
				r := booking.Reservation{State: booking.Done, Interval: span(days.start, days.end, zone)}
				for _, test := range []struct {
					name string
					now  time.Time
					want error
				}{
					{"a day early", r.Start.Add(-24 * time.Hour), booking.ErrOutsideWindow},
					{"3 min before start", r.Start.Add(-3 * time.Minute), booking.ErrOutsideWindow},
					{"2 min 1 s before start", r.Start.Add(-2*time.Minute - time.Second), booking.ErrOutsideWindow},
					{"2 min 1 ns before start", r.Start.Add(-2*time.Minute - 1), booking.ErrOutsideWindow},
					{"2 min before start", r.Start.Add(-2 * time.Minute), nil},
					{"start", r.Start, nil},
					{"stored end - 2 min, if not too early", maxTime(r.StoredEnd().Add(-2*time.Minute), r.Start), nil},
					{"stored end", r.StoredEnd(), nil},
					{"2 min 1 s before the end", r.End.Add(-2*time.Minute - time.Second), nil},
					{"2 min 1 ns before the end", r.End.Add(-2*time.Minute - 1), nil},
					{"2 min before the end", r.End.Add(-2 * time.Minute), booking.ErrOutsideWindow},
					{"end", r.End, booking.ErrOutsideWindow},
					{"a day late", r.End.Add(24 * time.Hour), booking.ErrOutsideWindow},
				} {
					if err := r.CanUnlock(test.now); !errors.Is(err, test.want) {
						t.Errorf("%s: %v, want %v", test.name, err, test.want)
					}
				}
			})
		})
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Only a confirmed reservation opens doors; its state is checked before the time.
func TestCanUnlockOnlyWhenDone(t *testing.T) {
	t.Parallel()
	i := span("2026-11-21 15:00", "2026-11-21 16:00", seoul)
	for _, state := range append(allStates, "") {
		r := booking.Reservation{State: state, Interval: i}
		inside, outside := booking.ErrNotConfirmed, booking.ErrNotConfirmed
		if state == booking.Done {
			inside, outside = nil, booking.ErrOutsideWindow
		}
		if err := r.CanUnlock(i.Start); !errors.Is(err, inside) {
			t.Errorf("%s, inside: %v, want %v", state, err, inside)
		}
		if err := r.CanUnlock(i.End); !errors.Is(err, outside) {
			t.Errorf("%s, outside: %v, want %v", state, err, outside)
		}
	}
}

// Two neighbouring reservations of a room never have a working key at the same time.
func TestUnlockWindowsOfNeighboursAreApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := anyZone.Draw(t, "zone")
		a := booking.Reservation{State: booking.Done, Interval: intervalIn(zone).Draw(t, "a")}
		gap := time.Duration(rapid.IntRange(1, 6).Draw(t, "gap")) * booking.SlotLength
		b := booking.Reservation{State: booking.Done, Interval: longFrom(t, a.End.Add(gap), zone)}
		_, to := a.UnlockWindow()
		from, _ := b.UnlockWindow()
		if to.After(from) {
			t.Fatalf("%s after %s", to, from)
		}
		now := a.Start.Add(time.Duration(rapid.Int64Range(0, int64(b.End.Sub(a.Start))).Draw(t, "now")))
		if a.CanUnlock(now) == nil && b.CanUnlock(now) == nil {
			t.Fatalf("at %s both open", now)
		}
	})
}

func TestCanCancel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ start, deadline string }{
		{"2026-11-21 15:00", "2026-11-21 14:30"},
		{"2026-11-21 00:20", "2026-11-20 23:50"},
		{"2027-01-01 00:00", "2026-12-31 23:30"},
		{"2028-03-01 00:10", "2028-02-29 23:40"},
		{"2027-03-01 00:10", "2027-02-28 23:40"},
	} {
		inZones(t, func(t *testing.T, zone *time.Location) {
			start, deadline := at(test.start, zone), at(test.deadline, zone)
			r := booking.Reservation{Interval: booking.Interval{Start: start, End: start.Add(time.Hour)}}
			if got := r.RefundDeadline(); !got.Equal(deadline) {
				t.Errorf("deadline %s, want %s", got, deadline)
			}
			for _, edge := range []struct {
				now  time.Time
				want error
			}{
				{deadline.Add(-24 * time.Hour), nil},
				{deadline.Add(-time.Second), nil},
				{deadline, nil},
				{deadline.Add(1), booking.ErrTooLateToCancel},
				{deadline.Add(time.Second), booking.ErrTooLateToCancel},
				{start, booking.ErrTooLateToCancel},
				{start.Add(24 * time.Hour), booking.ErrTooLateToCancel},
			} {
				if err := r.CanCancel(edge.now); !errors.Is(err, edge.want) {
					t.Errorf("at %s: %v, want %v", edge.now, err, edge.want)
				}
			}
		})
	}
}

func TestBookingStatus(t *testing.T) {
	t.Parallel()
	paid := at("2026-11-21 14:00", seoul)
	for _, test := range []struct {
		name string
		r    booking.Reservation
		want booking.BookingStatus
	}{
		{"hold", booking.Reservation{State: booking.Hold, Source: booking.Customer}, "beforePaymentTab"},
		{"hold with payment data", booking.Reservation{State: booking.Hold, Source: booking.Customer, OrderID: "o"}, "paymentTab"},
		{"confirming", booking.Reservation{State: booking.Confirming, Source: booking.Customer, OrderID: "o"}, "paymentTab"},
		{"administrator's hold", booking.Reservation{State: booking.Hold, Source: booking.Admin}, "beforePaymentTab"},
		{"administrator's hold on its way to an account", booking.Reservation{State: booking.Hold, Source: booking.Admin, OrderID: "o"}, "beforePaymentTab"},
		{"waiting", booking.Reservation{State: booking.WaitingForDeposit, OrderID: "o", Method: booking.VirtualAccount}, "waitingForDeposit"},
		{"waiting for an administrator's customer", booking.Reservation{State: booking.WaitingForDeposit, Source: booking.Admin, OrderID: "o", Method: booking.VirtualAccount}, "waitingForDeposit"},
		{"paid", booking.Reservation{State: booking.Done, OrderID: "o", Method: booking.Card, PaidAt: paid}, "paid"},
		{"registered", booking.Reservation{State: booking.Done, Source: booking.Admin, Method: booking.ByAdmin}, "paid"},
		{"partner", booking.Reservation{State: booking.Done, Source: booking.Partner}, "paid"},
		{"money on its way back", booking.Reservation{State: booking.Canceling, OrderID: "o", Method: booking.Card, PaidAt: paid}, "paid"},
		{"deposit on its way back", booking.Reservation{State: booking.Canceling, OrderID: "o", Method: booking.VirtualAccount, PaidAt: paid}, "paid"},
		{"account being closed", booking.Reservation{State: booking.Canceling, OrderID: "o", Method: booking.VirtualAccount}, "waitingForDeposit"},
		{"canceled", booking.Reservation{State: booking.Canceled, OrderID: "o", PaidAt: paid}, ""},
		{"expired", booking.Reservation{State: booking.Expired}, ""},
		{"released", booking.Reservation{State: booking.Released}, ""},
		{"conflict", booking.Reservation{State: booking.Conflict, Source: booking.Partner}, "conflict"},
	} {
		if got := test.r.BookingStatus(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A status is shown if and only if a reservation is live, or a booking in conflict, which staff resolve.
func TestLive(t *testing.T) {
	t.Parallel()
	live := map[booking.State]bool{
		"HOLD": true, "CONFIRMING": true, "WAITING_FOR_DEPOSIT": true, "DONE": true, "CANCELING": true,
		"CANCELED": false, "EXPIRED": false, "RELEASED": false, "CONFLICT": false,
	}
	for state, want := range live {
		if got := state.Live(); got != want {
			t.Errorf("%s: live %t", state, got)
		}
		if got := (booking.Reservation{State: state}).BookingStatus() != ""; got != (want || state == booking.Conflict) {
			t.Errorf("%s: status shown %t", state, got)
		}
	}
	if booking.State("").Live() {
		t.Error("no state is live")
	}
}

func TestOccupies(t *testing.T) {
	t.Parallel()
	ends := at("2026-11-21 15:10", seoul)
	for _, state := range allStates {
		r := booking.Reservation{State: state, ExpiresAt: ends}
		for _, edge := range []struct {
			name string
			now  time.Time
			hold bool // whether a hold occupies its room then
		}{
			{"before", ends.Add(-1), true},
			{"at the end", ends, false},
			{"after", ends.Add(time.Hour), false},
		} {
			want := state.Live()
			if state == booking.Hold {
				want = edge.hold
			}
			if got := r.Occupies(edge.now); got != want {
				t.Errorf("%s, %s: %t, want %t", state, edge.name, got, want)
			}
		}
	}
}

func TestHasKey(t *testing.T) {
	t.Parallel()
	for _, r := range []booking.Reservation{{SealedKey: "sealed"}, {DoorlockKey: "key"}, {SealedKey: "sealed", DoorlockKey: "key"}} {
		if !r.HasKey() {
			t.Errorf("%+v has a key", r)
		}
	}
	if (booking.Reservation{}).HasKey() {
		t.Error("a reservation without a key has one")
	}
}

// TestRoomMargin: no turnover is shorter than the margin of all rooms.
func TestRoomMargin(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[int]time.Duration{0: booking.Margin, 5: booking.Margin, 10: booking.Margin, 25: 25 * time.Minute, 60: booking.MaxMargin} {
		if got := (booking.Room{TurnoverMinutes: minutes}).Margin(); got != want {
			t.Errorf("%d minutes: %v, want %v", minutes, got, want)
		}
	}
}
