package httpapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// The live connection requires a WebSocket.
func TestLiveNeedsAWebSocket(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	if answer := hq.Get("/v2/admin/live?branch=gangnam&date=2026-11-25"); answer.HTTP != http.StatusBadRequest {
		t.Errorf("without an upgrade: %d", answer.HTTP)
	}
	says(t, "an unknown branch", hq.Get("/v2/admin/live?branch=busan&date=2026-11-25"), noSuchPlace)
}

// A cancelled reservation leaves the timeline but not the day, so that staff can answer where it went. A hold that ran out
// is not listed: it never became a reservation.
func TestDayListsCancelledReservations(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	start := slot(c.s, 5*time.Hour)
	register(t, c.Manager, 2, start)
	c.Customer.Post("/reservation", holdBody(3, start, time.Hour)).OK(t)
	id := live(t, c.s, 2)
	c.Manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", nil).OK(t)
	c.s.Clock.Advance(time.Hour)
	var day struct {
		Reservations, Canceled []struct{ ID, RoomNo, State string }
	}
	c.Viewer.Get("/v2/admin/branches/gangnam/timeline?date="+start.In(seoul).Format(time.DateOnly)).OK(t).Into(t, &day)
	for _, r := range day.Reservations {
		if r.ID == id {
			t.Error("the cancelled reservation still occupies its room")
		}
	}
	if len(day.Canceled) != 1 || day.Canceled[0].ID != id || day.Canceled[0].RoomNo != "2" || day.Canceled[0].State != "CANCELED" {
		t.Errorf("cancelled %+v, want %s in room 2", day.Canceled, id)
	}
}

// One call returns a day of a branch. The test also checks a search, a record, and the audit entries of these views.
func TestDayInTheConsole(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	start := c.start
	register(t, c.Manager, 2, start.Add(2*time.Hour))
	const branch = "/v2/admin/branches/gangnam/"
	type item struct {
		ID, RoomNo, Start, End, Source, State, BookingStatus string
		Branch                                               string
		Name, MobileNum, Method                              *string
		Amount, Version                                      int
	}
	var day struct {
		Date, Status   string
		Rooms          []struct{ RoomNo string }
		Reservations   []item
		Closed, Breaks []struct{ Start, End string }
	}
	c.Viewer.Get(branch+"timeline?date="+start.In(seoul).Format("2006-01-02")).OK(t).Into(t, &day)
	i := slices.IndexFunc(day.Reservations, func(r item) bool { return r.RoomNo == "1" })
	if i < 0 || len(day.Rooms) != 6 || day.Rooms[0].RoomNo != "1" || len(day.Closed)+len(day.Breaks) != 0 {
		t.Fatalf("day %+v", day)
	}
	first := day.Reservations[i]
	equal(t, "a reservation", first, item{
		ID: live(t, c.s, 1), RoomNo: "1", Start: wire(start), End: wire(start.Add(time.Hour)), Source: "CUSTOMER", State: "DONE", BookingStatus: "paid",
		Name: new("홍길동"), MobileNum: new("010-****-5678"), Method: new("카드"), Amount: 30000, Version: first.Version,
	})

	var found struct{ Reservations []item }
	orderID := only(t, c.s, `select order_id from reservation where id = $1::bigint`, first.ID)
	for _, query := range []string{"홍길", "1234-5678", "5678", orderID, first.ID, "HONG@example.com"} {
		c.Viewer.Get("/v2/admin/reservations?"+url.Values{"query": {query}}.Encode()).OK(t).Into(t, &found)
		if !slices.ContainsFunc(found.Reservations, func(r item) bool { return r.ID == first.ID && r.Branch == "gangnam" }) {
			t.Errorf("%q finds %+v", query, found.Reservations)
		}
		c.Other.Get("/v2/admin/reservations?"+url.Values{"query": {query}}.Encode()).OK(t).Into(t, &found)
		if len(found.Reservations) != 0 {
			t.Errorf("%q finds %+v for the manager of another branch", query, found.Reservations)
		}
	}

	var named struct {
		Rooms []struct{ Branch, RoomNo string }
	}
	for _, query := range []string{"강남 3번", "gangnam room3"} {
		c.Viewer.Get("/v2/admin/reservations?"+url.Values{"query": {query}}.Encode()).OK(t).Into(t, &named)
		if len(named.Rooms) != 1 || named.Rooms[0].Branch != "gangnam" || named.Rooms[0].RoomNo != "3" {
			t.Errorf("%q finds the rooms %+v", query, named.Rooms)
		}
		c.Other.Get("/v2/admin/reservations?"+url.Values{"query": {query}}.Encode()).OK(t).Into(t, &named)
		if len(named.Rooms) != 0 {
			t.Errorf("%q finds the rooms %+v for the manager of another branch", query, named.Rooms)
		}
	}

	var record struct {
		MobileNum, Email, OrderID, KeyLink *string
		Movable, Cancelable                bool
		NeedsRefundAccount                 bool
		History                            []struct{ Kind string }
	}
	c.Viewer.Get("/v2/admin/reservations/"+first.ID).OK(t).Into(t, &record)
	if record.KeyLink != nil {
		t.Error("a viewer is given a key")
	}
	answer := c.Manager.Get("/v2/admin/reservations/" + first.ID).OK(t)
	answer.Into(t, &record)
	key := ownerKey(t, c.s, first.ID)
	if *record.MobileNum != "010-1234-5678" || *record.OrderID != orderID || !strings.HasSuffix(*record.KeyLink, key) ||
		!record.Movable || !record.Cancelable || record.NeedsRefundAccount || record.History[0].Kind != "created" {
		t.Errorf("record %s", answer.Raw)
	}
	says(t, "no record", c.HQ.Get("/v2/admin/reservations/999999"), noReservation)

	var log struct {
		Entries []struct{ Actor, Action, Target string }
	}
	c.Viewer.Get(branch+"audit?action=reservation&actor=gangnam-viewer&limit=1").OK(t).Into(t, &log)
	if len(log.Entries) != 1 || log.Entries[0].Actor != "admin:gangnam-viewer" || log.Entries[0].Action != "reservation.view" || log.Entries[0].Target != first.ID {
		t.Errorf("audit log %+v", log)
	}

	var messages struct {
		Messages []struct{ ID, Template, To, State string }
	}
	c.Manager.Post("/v2/admin/reservations/"+first.ID+"/key-message", nil).OK(t)
	c.Manager.Get(branch+"messages?limit=1").OK(t).Into(t, &messages)
	newest := messages.Messages[0]
	if newest.To != "010-****-5678" || newest.Template != "reservation-confirmed" {
		t.Errorf("messages %+v", messages)
	}
	c.Manager.Get(branch+"messages?before="+newest.ID).OK(t).Into(t, &messages)
	if slices.ContainsFunc(messages.Messages, func(m struct{ ID, Template, To, State string }) bool {
		return m.ID >= newest.ID && len(m.ID) == len(newest.ID)
	}) {
		t.Errorf("before %s: %+v", newest.ID, messages)
	}
	for name, bad := range map[string]string{"before": "0", "limit": "201"} {
		refuses(t, name, c.Manager.Get(branch+"messages?"+name+"="+bad), name)
		refuses(t, name, c.Manager.Get(branch+"audit?"+name+"="+bad), name)
	}
}

// The console shows the doors, sensors and agent of a branch, even if the agent has never connected.
func TestDevicesInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	const branch = "/v2/admin/branches/gangnam/"
	var devices struct {
		Online      bool
		Sensors     []string
		Doors       []struct{ Device string }
		Credentials []struct {
			Username  string
			RevokedAt *string
		}
	}
	manager.Get(branch+"devices").OK(t).Into(t, &devices)
	if devices.Online || devices.Sensors == nil || devices.Doors == nil || len(devices.Credentials) != 1 {
		t.Errorf("without an agent: %+v", devices)
	}
	a := connectAgent(t, s, "gangnam", protocol.Inventory{Sensors: []string{"로비"}, Doors: []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront}}})
	waitOnline(t, a)
	for deadline := time.Now().Add(time.Minute); !devices.Online; time.Sleep(20 * time.Millisecond) {
		manager.Get(branch+"devices").OK(t).Into(t, &devices)
		if time.Now().After(deadline) {
			t.Fatalf("with an agent: %+v", devices)
		}
	}
	equal(t, "sensors", devices.Sensors, []string{"로비"})
	var doors struct {
		Online bool
		Doors  []struct{ Device, Kind string }
	}
	manager.Get(branch+"doors").OK(t).Into(t, &doors)
	if len(doors.Doors) != 8 || doors.Doors[0].Device != "front_1" || doors.Doors[2].Device != "room_1" {
		t.Errorf("doors %+v", doors)
	}
	if err := a.Publish(protocol.Telemetry{Readings: []protocol.Reading{{Location: "로비", Celsius: 21.5, RelativeHumidity: 40}}}); err != nil {
		t.Fatal(err)
	}
	type reading struct {
		At                string
		Celsius, Humidity float64
	}
	var climate struct {
		Sensors []struct {
			Location string
			Latest   *reading
		}
	}
	for deadline := time.Now().Add(time.Minute); len(climate.Sensors) == 0 || climate.Sensors[0].Latest == nil; time.Sleep(20 * time.Millisecond) {
		manager.Get(branch+"climate").OK(t).Into(t, &climate)
		if time.Now().After(deadline) {
			t.Fatalf("climate %+v", climate)
		}
	}
	var history struct{ Readings []reading }
	manager.Get(branch+"sensors?hours=1&"+url.Values{"location": {"로비"}}.Encode()).OK(t).Into(t, &history)
	if len(history.Readings) != 1 || history.Readings[0].Celsius != 21.5 {
		t.Errorf("history %+v", history)
	}
	refuses(t, "91 days", manager.Get(branch+"sensors?hours=2161&location=a"), "hours")

	manager.Delete("/v2/admin/agents/agent-gangnam", nil).OK(t)
	manager.Get(branch+"devices").OK(t).Into(t, &devices)
	if devices.Credentials[0].RevokedAt == nil {
		t.Error("the credential still stands")
	}
	says(t, "agent of another branch", manager.Delete("/v2/admin/agents/agent-hongdae", nil), outOfScope)
	manager.Post(branch+"exports", map[string]string{"what": "audit"}).OK(t)
	if n := only(t, s, `select count(*)::text from audit where action in ('agent.revoke', 'export.audit')`); n != "2" {
		t.Errorf("%s of 2 deeds are in the audit log", n)
	}
}
