package partner_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/partner"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// calendarOf is a calendar of a partner that lists room 1.
type calendarOf struct {
	s       *fixture
	from    *feed
	service *partner.Service
	listing postgres.Listing
}

func (s *fixture) reading(t *testing.T) *calendarOf {
	c := &calendarOf{s: s, from: &feed{}, listing: s.calendar(t, 1, "t")}
	c.service = s.reads(t, c.from)
	return c
}

func (c *calendarOf) read(t *testing.T, bookings ...channel.Booking) {
	t.Helper()
	c.from.pulled = channel.Pulled{Bookings: bookings}
	if err := c.service.Import(c.s.ctx, c.listing); err != nil {
		t.Fatal(err)
	}
}

func (c *calendarOf) one(t *testing.T, sql string) (text string) {
	t.Helper()
	if err := c.s.DB.Pool.QueryRow(c.s.ctx, sql).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// want checks the status of booking A with the state of its reservation, the reservations made for it, and the open alerts.
func (c *calendarOf) want(t *testing.T, status, reservations, alerts string) {
	t.Helper()
	if got := c.one(t, `select b.status || ' ' || coalesce(r.state, '-') from partner_booking b left join reservation r on r.id = b.reservation_id where b.external_id = 'A'`); got != status {
		t.Errorf("the booking is %s, want %s", got, status)
	}
	if got := c.one(t, `select count(*)::text from reservation where source = 'PARTNER' and extends is null`); got != reservations {
		t.Errorf("%s reservations of the partner, want %s", got, reservations)
	}
	if got := c.one(t, `select count(*)::text from alert where kind = 'discrepancy' and branch = 'gangnam' and subject like 'reservation:%' and ended_at is null`); got != alerts {
		t.Errorf("%s alerts, want %s", got, alerts)
	}
}

func (c *calendarOf) cancel(t *testing.T, order string) {
	t.Helper()
	reply, err := c.s.admin(t).Do(c.s.ctx, http.MethodDelete, "/admin/reservation/"+strconv.FormatInt(c.s.id(t, order), 10)+"?bookingStatus=paid", nil)
	must(t, reply, err)
}

// TestBookingOfDaysOccupiesTheRoom: a calendar gives days that its owner blocks as one entry, longer than a reservation can be.
func TestBookingOfDaysOccupiesTheRoom(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.reading(t)
	at := s.start(3)
	days := func(hours int) channel.Booking {
		return channel.Booking{ExternalID: "A", Start: at.Add(time.Duration(hours) * time.Hour), End: at.Add(time.Duration(hours+48) * time.Hour)}
	}
	taken := func(name string, hours int, want bool) {
		t.Helper()
		if err := s.buyer().Hold(s.ctx, moneytest.Wish{Room: 1, Start: at.Add(time.Duration(hours) * time.Hour), Method: sandbox.MethodCard, Mobile: "01012345678"}); (err != nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.read(t, days(0))
	c.want(t, "CONFIRMED DONE", "1", "0")
	if _, err := c.service.Reserve.TakePartnerBooking(s.ctx, reserve.PartnerBooking{Booking: days(0), Listing: c.listing, Sold: true}); err != nil {
		t.Fatal(err)
	}
	c.want(t, "CONFIRMED DONE", "1", "0") // as it was
	for _, hours := range []int{0, 4, 5, 24, 47} {
		taken("within the booking", hours, true)
	}
	c.read(t, days(10)) // moved
	c.want(t, "CONFIRMED DONE", "1", "0")
	taken("within the new time", 50, true)
	taken("the time that it left", 2, false)
	c.read(t) // missing twice: canceled
	c.read(t)
	c.want(t, "CANCELLED CANCELED", "1", "0")
	taken("the time of a canceled booking", 30, false)
	if rows := c.one(t, `select count(*)::text from reservation where source = 'PARTNER' and state = 'DONE'`); rows != "0" {
		t.Errorf("%s parts of a canceled booking remain", rows)
	}
}

// TestConflictOfACalendar: a booking that a partner has sold although its time is taken is one reservation and one alert, however
// often the calendar is read, until the conflict is resolved.
func TestConflictOfACalendar(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.reading(t)
	at := s.start(3)
	ours, err := s.buyer().Buy(s.ctx, moneytest.Wish{Room: 1, Start: at, Method: sandbox.MethodCard, Mobile: "01012345678"})
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []time.Duration{time.Hour, time.Hour, time.Hour} {
		c.read(t, channel.Booking{ExternalID: "A", Start: at, End: at.Add(length)})
		c.want(t, "CONFLICT CONFLICT", "1", "1")
	}
	c.cancel(t, ours.OrderID)
	c.read(t, channel.Booking{ExternalID: "A", Start: at, End: at.Add(time.Hour)})
	c.want(t, "CONFIRMED DONE", "2", "0")
}

// TestBookingThatGrowsIntoAConflict keeps the time that it has: its guest may be inside.
func TestBookingThatGrowsIntoAConflict(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.reading(t)
	at := s.start(3)
	c.read(t, channel.Booking{ExternalID: "A", Start: at, End: at.Add(time.Hour)})
	ours, err := s.buyer().Buy(s.ctx, moneytest.Wish{Room: 1, Start: at.Add(70 * time.Minute), Method: sandbox.MethodCard, Mobile: "01012345678"})
	if err != nil {
		t.Fatal(err)
	}
	longer := channel.Booking{ExternalID: "A", Start: at, End: at.Add(4 * time.Hour)}
	for range 2 {
		c.read(t, longer)
		c.want(t, "CONFLICT DONE", "1", "1")
	}
	for _, start := range []time.Duration{0, 140 * time.Minute, 3 * time.Hour} {
		if err := s.buyer().Hold(s.ctx, moneytest.Wish{Room: 1, Start: at.Add(start), Method: sandbox.MethodCard, Mobile: "01012345678"}); err == nil {
			t.Errorf("the time of the partner's booking %s after its start was sold", start)
		}
	}
	c.cancel(t, ours.OrderID)
	c.read(t, longer)
	c.want(t, "CONFIRMED DONE", "1", "0")
	if end := c.one(t, `select to_char(end_at - start_at, 'HH24:MI') from reservation where source = 'PARTNER' and state = 'DONE'`); end != "04:00" {
		t.Errorf("the booking lasts %s, want 04:00", end)
	}
}

// TestConflictIsNotSold: the partner has sold the whole time of its booking, so the part of it that is free is sold to no other guest.
func TestConflictIsNotSold(t *testing.T) {
	t.Parallel()
	const (
		sold       = 12 // hours of the booking, longer than a reservation
		inConflict = `select id::text from reservation where state = 'CONFLICT'`
	)
	at := func(s *fixture, hour int) time.Time { return s.start(30).Add(time.Duration(hour) * time.Hour) }
	booked := func(s *fixture, hours int) channel.Booking {
		return channel.Booking{ExternalID: "A", Start: at(s, 0), End: at(s, hours), Phone: "01055556666"}
	}
	free := func(t *testing.T, s *fixture, want string) {
		t.Helper()
		got := ""
		for hour := -1; hour <= sold; hour++ {
			buyer := s.buyer()
			if err := buyer.Hold(s.ctx, moneytest.Wish{Room: 1, Start: at(s, hour), Method: sandbox.MethodCard, Mobile: "01012345678"}); err != nil {
				got += "x"
				continue
			}
			got += "."
			reply, err := buyer.Do(s.ctx, http.MethodDelete, "/reservation", nil)
			must(t, reply, err)
		}
		if got != want {
			t.Errorf("hours for sale are %s, want %s", got, want)
		}
	}
	buy := func(t *testing.T, s *fixture, hour int) string {
		t.Helper()
		ours, err := s.buyer().Buy(s.ctx, moneytest.Wish{Room: 1, Start: at(s, hour), Method: sandbox.MethodCard, Mobile: "01012345678"})
		if err != nil {
			t.Fatal(err)
		}
		return ours.OrderID
	}
	drop := func(t *testing.T, c *calendarOf) {
		t.Helper()
		reply, err := c.s.admin(t).Do(c.s.ctx, http.MethodDelete, "/admin/reservation/"+c.one(t, inConflict)+"?bookingStatus=conflict", nil)
		must(t, reply, err)
	}
	const (
		whole   = "xxxxxxxxxxxxxx" // the hours beside the booking lack the margin
		oneHour = "....xxx......." // a stay of one hour, with the hours beside it
	)
	for name, ends := range map[string]struct {
		end  func(t *testing.T, c *calendarOf, ours string)
		then string
	}{
		"dropped":   {func(t *testing.T, c *calendarOf, _ string) { drop(t, c) }, oneHour},
		"cancelled": {func(t *testing.T, c *calendarOf, _ string) { c.read(t); c.read(t) }, oneHour},
		"our guest cancels": {func(t *testing.T, c *calendarOf, ours string) {
			c.cancel(t, ours)
			free(t, c.s, whole) // also before the calendar is read again
			c.read(t, booked(c.s, sold))
			c.want(t, "CONFIRMED DONE", "2", "0")
		}, whole},
		"our guest cancels while the calendar cannot be read": {func(t *testing.T, c *calendarOf, ours string) {
			c.cancel(t, ours)
			if err := c.service.FollowConflicts(c.s.ctx); err != nil {
				t.Fatal(err)
			}
			c.want(t, "CONFIRMED DONE", "2", "0")
		}, whole},
		"another room": {func(t *testing.T, c *calendarOf, _ string) {
			c.change(t, c.number(t, c.one(t, inConflict)), "2", at(c.s, 0), at(c.s, 5))
		}, oneHour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			c := s.reading(t)
			ours := buy(t, s, 4)
			free(t, s, oneHour)
			for range 2 {
				c.read(t, booked(s, sold))
				c.want(t, "CONFLICT CONFLICT", "1", "1")
				free(t, s, whole)
			}
			if n := c.one(t, `select count(*)::text from reservation where source = 'PARTNER' and state <> 'CONFLICT'`); n != "3" { // 4 hours before our stay, 7 after it
				t.Errorf("%s holds were made for two reads of the conflict, want 3", n)
			}
			blocks := []string{block(1, at(s, 4))} // at another channel
			for _, held := range []booking.Interval{{Start: at(s, 0).Add(-10 * time.Minute), End: at(s, 4).Add(-10 * time.Minute)}, {Start: at(s, 5), End: at(s, 10)}, {Start: at(s, 10), End: at(s, 12)}} {
				blocks = append(blocks, fmt.Sprintf("gangnam-1 %s %v", moneytest.Wire(held.Start), held.Length()))
			}
			s.blocks(t, blocks...)
			ends.end(t, c, ours)
			free(t, s, ends.then)
			if ends.then == oneHour && name != "another room" {
				s.blocks(t, block(1, at(s, 4)))
			}
		})
	}
}

// TestRandomConflicts: a partner changes a booking while guests of ours buy and cancel hours around it. After each reading, no time of the
// booking is for sale; when the booking has ended, nothing remains of it.
func TestRandomConflicts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s, c := leading(t)
			exec(t, s, `update room set turnover_minutes = $1`, 10+20*(seed%2))
			random := rand.New(rand.NewPCG(seed, 1))
			begin := s.start(30)
			within := func(slots int) time.Time { return begin.Add(time.Duration(random.IntN(slots)) * 10 * time.Minute) }
			var ours []string
			var a channel.Booking
			conflicts := 0
			for range 30 {
				switch random.IntN(6) {
				case 0, 1:
					a = channel.Booking{ExternalID: "A", Start: within(50), Phone: "01055556666"}
					a.End = a.Start.Add(time.Duration(1+random.IntN(30)) * 10 * time.Minute)
				case 2:
					if n := len(ours); n > 0 {
						c.cancel(t, ours[n-1])
						ours = ours[:n-1]
					}
				default:
					start := within(60)
					bought, err := s.buyer().Buy(s.ctx, moneytest.Wish{Room: 1, Start: start, Method: sandbox.MethodCard, Mobile: "01012345678"})
					if err == nil {
						ours = append(ours, bought.OrderID)
						if start.Before(a.End) && a.Start.Before(start.Add(time.Hour)) { // also if the time has become free since the last reading
							t.Fatalf("sold at %s in the booking %s to %s", start, a.Start, a.End)
						}
					}
				}
				if a.Start.IsZero() {
					continue
				}
				c.read(t, a)
				if c.one(t, `select status from partner_booking where external_id = 'A'`) == reserve.PartnerConflict {
					conflicts++
				}
				if sold := c.one(t, fmt.Sprintf(`
					select coalesce(string_agg(slot::text, ', '), '') from generate_series('%s'::timestamptz, '%s'::timestamptz - interval '1 second', '10 minutes') slot
					where not exists (select from reservation r join room m on m.id = r.room_id
						where m.id = %d and r.state in ('HOLD', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
						and r.occupied && room_occupied(m.turnover_minutes, false, slot, slot + interval '10 minutes'))`,
					a.Start.Format(time.RFC3339), a.End.Format(time.RFC3339), c.listing.Room)); sold != "" {
					t.Fatalf("for sale in the booking %s to %s: %s", a.Start, a.End, sold)
				}
			}
			if conflicts == 0 {
				t.Error("no change met a reservation of ours")
			}
			c.read(t)
			c.read(t)
			if rest := c.one(t, `select count(*)::text from reservation where source = 'PARTNER' and state in ('HOLD', 'DONE', 'CONFLICT')`); rest != "0" {
				t.Errorf("%s reservations of a cancelled booking remain", rest)
			}
		})
	}
}
