package partner_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

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
	longer := channel.Booking{ExternalID: "A", Start: at, End: at.Add(90 * time.Minute)}
	for range 2 {
		c.read(t, longer)
		c.want(t, "CONFLICT DONE", "1", "1")
	}
	if err := s.buyer().Hold(s.ctx, moneytest.Wish{Room: 1, Start: at, Method: sandbox.MethodCard, Mobile: "01012345678"}); err == nil {
		t.Error("the time of the partner's booking was sold")
	}
	c.cancel(t, ours.OrderID)
	c.read(t, longer)
	c.want(t, "CONFIRMED DONE", "1", "0")
	if end := c.one(t, `select to_char(end_at - start_at, 'HH24:MI') from reservation where source = 'PARTNER'`); end != "01:30" {
		t.Errorf("the booking lasts %s, want 01:30", end)
	}
}
