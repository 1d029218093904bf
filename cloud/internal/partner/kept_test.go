package partner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/protocol"
)

// leading returns a service that imports calendars, and a calendar of room 1.
func leading(t *testing.T) (*fixture, *calendarOf) {
	t.Helper()
	s := open(t)
	s.leadImports(t)
	return s, s.reading(t)
}

// rows describes the live reservations of the partner and their rooms, with times relative to at.
func (c *calendarOf) rows(t *testing.T, at time.Time) string {
	t.Helper()
	return c.one(t, fmt.Sprintf(`
		select coalesce(string_agg(concat(r.state, ' room ', m.no, ' ', (extract(epoch from r.start_at) - %[1]d)::int / 60, '-', (extract(epoch from r.end_at) - %[1]d)::int / 60),
			', ' order by r.start_at, r.id), '') from reservation r join room m on m.id = r.room_id
		where r.source = 'PARTNER' and r.state in ('DONE', 'CONFLICT')`, at.Unix()))
}

// stay returns the id of the partner's only stay that has a condition, and the key of its owner.
func (c *calendarOf) stay(t *testing.T, condition string) (id int64, key string) {
	t.Helper()
	if err := c.s.DB.Pool.QueryRow(c.s.ctx, `select id from reservation where source = 'PARTNER' and extends is null and state = 'DONE' and `+condition).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id, c.s.OwnerKey(t, id)
}

// change has staff change the room and the times of a stay.
func (c *calendarOf) change(t *testing.T, id int64, room string, start, end time.Time) {
	t.Helper()
	reply, err := c.s.admin(t).Do(c.s.ctx, http.MethodPut, fmt.Sprintf("/admin/reservation/%d", id),
		map[string]any{"room": room, "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(end)})
	must(t, reply, err)
}

// published reports whether the calendar of a room that the partner reads has an entry with a bound, such as "DTEND".
func (c *calendarOf) published(t *testing.T, room int, token, bound string, at time.Time) bool {
	t.Helper()
	_, body, _ := c.s.get(t, fmt.Sprintf("/ical/gangnam/%d.ics?token=%s", room, token), "")
	return strings.Contains(body, bound+":"+at.UTC().Format("20060102T150405Z"))
}

// TestGuestWhomStaffMovedStaysThere: staff move the guest of a partner to another room, because the own one is out of order. The partner,
// which does not know it, changes its booking a little; it must not sell the other room.
func TestGuestWhomStaffMovedStaysThere(t *testing.T) {
	t.Parallel()
	s, c := leading(t)
	s.calendar(t, 2, "t2")
	at := s.start(3)
	booking := channel.Booking{ExternalID: "A", Start: at, End: at.Add(time.Hour), Name: "김손님", Phone: "01055556666"}
	c.read(t, booking)
	id, key := c.stay(t, "true")
	c.change(t, id, "2", at, at.Add(time.Hour))
	if c.published(t, 1, "t", "DTSTART", at.Add(-10*time.Minute)) || !c.published(t, 2, "t2", "DTSTART", at.Add(-10*time.Minute)) {
		t.Error("the partner does not read that its guest is in room 2, and that room 1 is free")
	}
	if _, err := s.buyer().Buy(s.ctx, s.wish(1, 3, sandbox.MethodCard)); err != nil { // the room that the guest has left
		t.Fatal(err)
	}
	booking.End = at.Add(50 * time.Minute)
	c.read(t, booking)
	if got := c.rows(t, at); got != "DONE room 2 0-50" {
		t.Errorf("after a change by the partner: %s, want 50 minutes in room 2", got)
	}
	booking.Start, booking.End = at.Add(24*time.Hour), at.Add(25*time.Hour)
	c.read(t, booking)
	if got := c.rows(t, at); got != "DONE room 2 1440-1500" {
		t.Errorf("on another day: %s, want room 2", got)
	}
	if after, now := c.stay(t, "true"); after != id || now != key {
		t.Error("the guest has another key")
	}
}

// TestTimeThatStaffGaveIsKept: staff give the guest of a partner another hour. It stays when the partner changes the start, and the partner
// reads that it must not sell it.
func TestTimeThatStaffGaveIsKept(t *testing.T) {
	t.Parallel()
	s, c := leading(t)
	at := s.start(3)
	booking := channel.Booking{ExternalID: "A", Start: at, End: at.Add(time.Hour)}
	c.read(t, booking)
	id, _ := c.stay(t, "true")
	c.change(t, id, "1", at, at.Add(2*time.Hour))
	if !c.published(t, 1, "t", "DTEND", at.Add(130*time.Minute)) {
		t.Error("the partner does not read the added hour")
	}
	booking.Start = at.Add(10 * time.Minute)
	c.read(t, booking)
	if got := c.rows(t, at); got != "DONE room 1 10-120" {
		t.Errorf("after a change of the start: %s, want it to end after two hours", got)
	}
}

// TestEarlyEndIsKept: the guest of a stay of two days ends it early. An earlier end that the partner reports makes it no longer again.
func TestEarlyEndIsKept(t *testing.T) {
	t.Parallel()
	s, c := leading(t)
	at := s.start(0)
	booking := channel.Booking{ExternalID: "A", Start: at, End: at.Add(48 * time.Hour), Name: "김손님", Phone: "01055556666"}
	c.read(t, booking)
	_, key := c.stay(t, "true")
	s.Clock.Advance(26 * time.Hour)
	reply, err := s.buyer().Post(s.ctx, "/v2/keys/"+key+"/end", nil)
	must(t, reply, err)
	ended := c.one(t, `select stay_end::text from reservation where source = 'PARTNER' and extends is null`)
	for range 2 {
		booking.End = booking.End.Add(-time.Hour)
		c.read(t, booking)
		if got := c.one(t, `select stay_end::text from reservation where source = 'PARTNER' and extends is null`); got != ended {
			t.Errorf("the stay ends at %s, want %s", got, ended)
		}
		s.Clock.Advance(time.Hour) // the guest has left
	}
}

// TestStaffResolveAConflict: the partner has sold a time that our guest has paid for. Staff see both on the day, and give the partner's guest
// another room, or drop the booking. Neither is undone by the next reading of the calendar.
func TestStaffResolveAConflict(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]time.Duration{"an hour": time.Hour, "eleven hours": 11 * time.Hour} {
		for _, drop := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " dropped ", drop), func(t *testing.T) {
				t.Parallel()
				s, c := leading(t)
				at := s.start(3)
				if _, err := s.buyer().Buy(s.ctx, s.wish(1, 3, sandbox.MethodCard)); err != nil {
					t.Fatal(err)
				}
				booking := channel.Booking{ExternalID: "A", Start: at, End: at.Add(length), Name: "김손님", Phone: "01055556666"}
				c.read(t, booking)
				c.want(t, "CONFLICT CONFLICT", "1", "1")
				id := c.one(t, `select id::text from reservation where state = 'CONFLICT'`)
				admin := s.admin(t)
				day, err := admin.Do(s.ctx, http.MethodGet, "/v2/admin/branches/gangnam/timeline?date="+at.In(time.FixedZone("", 9*60*60)).Format(time.DateOnly), nil)
				must(t, day, err)
				if !strings.Contains(string(day.Data), `"conflicts":[{"id":"`+id+`"`) {
					t.Errorf("the day does not show the conflict: %s", day.Data)
				}
				path := "/admin/reservation/" + id
				if drop {
					for _, status := range []string{"paid", "DONE", "CONFLICT", ""} {
						if reply, err := admin.Do(s.ctx, http.MethodDelete, path+"?bookingStatus="+status, nil); err != nil || reply.HTTP != http.StatusBadRequest {
							t.Errorf("dropped as %q: HTTP %d, %v, want 400", status, reply.HTTP, err)
						}
					}
					reply, err := admin.Do(s.ctx, http.MethodDelete, path+"?bookingStatus=conflict", nil)
					must(t, reply, err)
				} else {
					end := at.Add(min(length, 5*time.Hour)) // as the record shows it
					move := func(room string) (moneytest.Reply, error) {
						return admin.Do(s.ctx, http.MethodPut, path, map[string]any{"room": room, "startDateTime": moneytest.Wire(at), "endDateTime": moneytest.Wire(end)})
					}
					if reply, err := move("1"); err != nil || reply.HTTP != http.StatusConflict {
						t.Errorf("moved to the taken room: HTTP %d, %v, want 409", reply.HTTP, err)
					}
					reply, err := move("2")
					must(t, reply, err)
				}
				want := map[bool]string{true: "CONFIRMED CANCELED", false: "CONFIRMED DONE"}[drop]
				for range 2 {
					c.want(t, want, "1", "0")
					c.read(t, booking)
				}
				if !drop {
					_, key := c.stay(t, "true")
					c.check(t, c.number(t, id), key, booking)
					if got := c.rows(t, at); !strings.HasPrefix(got, "DONE room 2 0-") || strings.Contains(got, "room 1") {
						t.Errorf("the stay is %s, want room 2", got)
					}
				}
			})
		}
	}
}

func (c *calendarOf) number(t *testing.T, text string) (n int64) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLongStayMovesToAnotherRoom: the room of a guest of two days breaks.
func TestLongStayMovesToAnotherRoom(t *testing.T) {
	t.Parallel()
	s, c := leading(t)
	at := s.start(0)
	booking := channel.Booking{ExternalID: "A", Start: at, End: at.Add(11 * time.Hour)}
	c.read(t, booking)
	id, key := c.stay(t, "true")
	s.Clock.Advance(7 * time.Hour)
	reply, err := s.admin(t).Do(s.ctx, http.MethodPut, fmt.Sprintf("/admin/reservation/%d", id), map[string]any{
		"room": "2", "startDateTime": moneytest.Wire(at), "endDateTime": moneytest.Wire(at.Add(11*time.Hour + 10*time.Minute)), "wholeStay": true})
	if err != nil || reply.HTTP != http.StatusBadRequest {
		t.Errorf("longer than before: got %d %s, %v, want 400", reply.HTTP, reply.Raw, err)
	}
	c.change(t, id, "2", at, at.Add(5*time.Hour)) // as V1 shows it: the first part
	if got := c.rows(t, at); got != "DONE room 2 0-300, DONE room 2 300-600, DONE room 2 600-660" {
		t.Errorf("the stay is %s, want it whole in room 2", got)
	}
	if after, now := c.stay(t, "true"); after != id || now != key {
		t.Error("the guest has another key")
	}
	c.read(t, booking)
	if got := c.rows(t, at); !strings.HasPrefix(got, "DONE room 2") {
		t.Errorf("after the next reading: %s, want room 2", got)
	}
}

// TestSearchFindsALongStayOnce: a guest of two days has a stay of many parts. A search for the guest shows the stay with the key, not
// its parts, which would displace other guests of that name.
func TestSearchFindsALongStayOnce(t *testing.T) {
	t.Parallel()
	s, c := leading(t)
	at := s.start(0)
	c.read(t, channel.Booking{ExternalID: "A", Start: at, End: at.Add(48 * time.Hour), Name: "김여행"})
	id, _ := c.stay(t, "true")
	reply, err := s.admin(t).Do(s.ctx, http.MethodGet, "/v2/admin/reservations?query="+url.QueryEscape("김여행"), nil)
	must(t, reply, err)
	var found struct {
		Reservations []struct {
			ID string `json:"id"`
		} `json:"reservations"`
	}
	if err := json.Unmarshal(reply.Data, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Reservations) != 1 || found.Reservations[0].ID != fmt.Sprint(id) {
		t.Errorf("got %v, want the stay %d alone", found.Reservations, id)
	}
}

// TestLongStayKeepsItsKey changes a booking again and again while the agent of the branch holds the pass of its stay: from minutes to days, to
// another start, and to times that another booking has. One key opens the door all the time, the parts of the stay are exactly its time, and no
// reading fails, so bookings beside it are imported, too.
func TestLongStayKeepsItsKey(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s, c := leading(t)
			random := rand.New(rand.NewPCG(seed, 0))
			at := s.start(0)
			tens := func(least, most int) time.Duration {
				return time.Duration(least+random.IntN(most-least)) * 10 * time.Minute
			}
			a := channel.Booking{ExternalID: "A", Start: at, End: at.Add(tens(3, 100))}
			c.read(t, a)
			id, key := c.stay(t, "true")
			exec(t, s, `insert into pass_agent (username) values ($1) on conflict do nothing`, protocol.AgentID("gangnam"))
			for n := range 12 {
				// The agent acknowledges a list with the present pass, and nothing else.
				exec(t, s, `delete from pass_listed`)
				exec(t, s, `update reservation set state = 'RELEASED' where quarantine_of is not null and state = $1`, "HOLD")
				exec(t, s, `insert into pass_listed (username, epoch, version, pass_id, room_id, not_before, not_after)
					select $1, 1, $2::int, p.id, p.room_id, p.not_before, p.not_after from pass p where p.ended_at is null`, protocol.AgentID("gangnam"), n+1)
				switch random.IntN(4) {
				case 0:
					a.Start = at.Add(tens(0, 60))
				case 1:
					a.Start, a.End = a.Start.Add(10*time.Minute), a.End.Add(10*time.Minute)
				}
				a.End = a.Start.Add(tens(3, 300))
				b := channel.Booking{ExternalID: fmt.Sprint("B", n), Start: at.Add(time.Duration(60+n) * time.Hour), End: at.Add(time.Duration(60+n)*time.Hour + 30*time.Minute)}
				c.from.pulled = channel.Pulled{Bookings: append(c.from.pulled.Bookings[1:], b)}
				c.read(t, append([]channel.Booking{a}, c.from.pulled.Bookings...)...)
				c.check(t, id, key, a)
				if t.Failed() {
					t.Fatalf("after %d changes, to %s-%s", n+1, a.Start, a.End)
				}
				if got := c.one(t, fmt.Sprintf(`select status from partner_booking where external_id = 'B%d'`, n)); got != "CONFIRMED" {
					t.Errorf("the booking beside it is %s", got)
				}
			}
		})
	}
}

// check compares the stay with the booking: it has the same id and key, and its parts are the time of the booking.
func (c *calendarOf) check(t *testing.T, id int64, key string, a channel.Booking) {
	t.Helper()
	if after, now := c.stay(t, fmt.Sprintf("id = %d", id)); after != id || now != key {
		t.Fatalf("the stay is %d with the key %s, want %d with %s", after, now, id, key)
	}
	type part struct{ start, end time.Time }
	rows, err := c.s.DB.Pool.Query(c.s.ctx, `
		select start_at, end_at, isempty(occupied) from reservation where $1 in (id, extends) and state = 'DONE' order by start_at`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	until := a.Start
	for rows.Next() {
		var p part
		var empty bool
		if err := rows.Scan(&p.start, &p.end, &empty); err != nil {
			t.Fatal(err)
		}
		if !p.start.Equal(until) || p.end.Sub(p.start) > 5*time.Hour || empty {
			t.Errorf("a part from %s to %s (occupies nothing: %t) follows %s", p.start, p.end, empty, until)
		}
		until = p.end
	}
	if !until.Equal(a.End) {
		t.Errorf("the stay ends at %s, want %s", until, a.End)
	}
	if got := c.one(t, fmt.Sprintf(`select (coalesce(stay_end, end_at) = (select max(end_at) from reservation where %[1]d in (id, extends) and state = 'DONE')
		and (select not_after from pass where reservation_id = %[1]d and ended_at is null) = coalesce(stay_end, end_at) - interval '2 minutes')::text from reservation where id = %[1]d`, id)); got != "true" {
		t.Error("the end of the stay, or of its PIN, is not that of its last part")
	}
}

// TestEntryWithoutTextIsImported: the UID of an entry is in another encoding, or has a NUL. The time is sold nevertheless, and so are the others.
func TestEntryWithoutTextIsImported(t *testing.T) {
	t.Parallel()
	for name, uid := range map[string]string{"NUL": "a\x00@x", "EUC-KR": "\xbf\xb9\xbe\xe0@x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := leading(t)
			at := s.start(3)
			text := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y//EN\r\n"
			for i, id := range []string{uid, "b@x", uid} {
				start := at.Add(time.Duration(2*i) * time.Hour).UTC()
				end := start.Add(time.Hour)
				if i == 2 {
					end = start.Add(-time.Hour) // a problem that names the entry
				}
				const layout = "20060102T150405Z"
				text += fmt.Sprintf("BEGIN:VEVENT\r\nUID:%s\r\nDTSTAMP:20270301T000000Z\r\nDTSTART:%s\r\nDTEND:%s\r\nEND:VEVENT\r\n", id, start.Format(layout), end.Format(layout))
			}
			list, problems, _, err := channel.ParseCalendar(s.ctx, []byte(text+"END:VCALENDAR\r\n"), time.UTC, "yeolda.example", s.Clock.Now())
			if err != nil || len(problems) != 1 {
				t.Fatalf("got problems %q, %v, want one", problems, err)
			}
			c.from.pulled = channel.Pulled{Bookings: list, Problems: problems}
			for range 2 {
				if err := c.service.Import(s.ctx, c.listing); err != nil {
					t.Fatal(err)
				}
			}
			if got := c.rows(t, at); got != "DONE room 1 0-60, DONE room 1 120-180" {
				t.Errorf("imported %s", got)
			}
		})
	}
}

func exec(t *testing.T, s *fixture, sql string, args ...any) {
	t.Helper()
	if _, err := s.DB.Pool.Exec(s.ctx, sql, args...); err != nil {
		t.Fatal(err)
	}
}

// TestThereAndBackDuringAnOutage: the agent of the branch holds the pass of a stay and is offline, and the partner changes the booking
// twice. The quarantine of the time that the stay has left is no other guest.
func TestThereAndBackDuringAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away, back time.Duration
		want       string
	}{
		"away and back":            {2 * time.Hour, 0, "DONE room 1 0-60"},
		"half an hour and back":    {30 * time.Minute, 0, "DONE room 1 0-60"},
		"earlier and back":         {-2 * time.Hour, 0, "DONE room 1 0-60"},
		"away and halfway back":    {2 * time.Hour, 30 * time.Minute, "DONE room 1 120-180"}, // until the quarantine of the first half hour ends
		"away and back, but later": {2 * time.Hour, 70 * time.Minute, "DONE room 1 70-130"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, l := leading(t)
			at := s.start(3)
			booking := channel.Booking{ExternalID: "A", Start: at, End: at.Add(time.Hour), Name: "김손님", Phone: "01055556666"}
			l.read(t, booking)
			id, key := l.stay(t, "true")
			exec(t, s, `insert into pass_agent (username) values ($1) on conflict do nothing`, protocol.AgentID("gangnam"))
			exec(t, s, `insert into pass_listed (username, epoch, version, pass_id, room_id, not_before, not_after)
				select $1, 1, 1, p.id, p.room_id, p.not_before, p.not_after from pass p where p.ended_at is null`, protocol.AgentID("gangnam"))
			for _, d := range []time.Duration{c.away, c.back} {
				booking.Start, booking.End = at.Add(d), at.Add(d+time.Hour)
				l.read(t, booking)
			}
			if got := l.rows(t, at); got != c.want || s.OwnerKey(t, id) != key {
				t.Errorf("got %s, or another key, want %s", got, c.want)
			}
			exec(t, s, `delete from pass_listed where username = $1`, protocol.AgentID("gangnam"))
			exec(t, s, `update reservation set state = 'RELEASED' where quarantine_of is not null and state = 'HOLD'`)
			l.read(t, booking)
			want := fmt.Sprintf("DONE room 1 %d-%d", int(c.back.Minutes()), int(c.back.Minutes())+60)
			if got := l.rows(t, at); got != want || s.OwnerKey(t, id) != key {
				t.Errorf("when the agent is back: got %s, or another key, want %s", got, want)
			}
			if open := l.one(t, `select count(*)::text from alert where kind = 'discrepancy' and ended_at is null`); open != "0" {
				t.Errorf("%s alerts are open", open)
			}
		})
	}
}

// TestStaffResolveAGrownConflict: the partner makes a booking longer, into a sold hour, and staff agree on another room and time with the
// guest. Reading the same booking again does not move the guest back.
func TestStaffResolveAGrownConflict(t *testing.T) {
	t.Parallel()
	s, l := leading(t)
	at := s.start(3)
	booking := channel.Booking{ExternalID: "A", Start: at, End: at.Add(time.Hour), Name: "김손님", Phone: "01055556666"}
	l.read(t, booking)
	id, _ := l.stay(t, "true")
	exec(t, s, `insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method)
		select branch_id, room_id, 'DONE', 'ADMIN', end_at + interval '10 minutes', end_at + interval '50 minutes',
		tstzrange(end_at + interval '10 minutes', end_at + interval '50 minutes'), '관리자' from reservation where id = $1`, id)
	booking.End = at.Add(2 * time.Hour)
	l.read(t, booking)
	const open = `select count(*)::text from alert where kind = 'discrepancy' and ended_at is null`
	if l.one(t, open) != "1" {
		t.Error("no alert about the conflict")
	}
	l.change(t, id, "2", at.Add(5*time.Hour), at.Add(7*time.Hour))
	for range 2 {
		l.read(t, booking)
		if got := l.rows(t, at); got != "DONE room 2 300-420" || l.one(t, open) != "0" {
			t.Errorf("after the next reading: %s, %s alerts", got, l.one(t, open))
		}
	}
}

// TestStaffMovedInTime: staff move a stay to another time, and then the partner changes one bound of its booking by ten minutes.
func TestStaffMovedInTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		moved, start, end time.Duration
		want              string
	}{
		"later, a later end":     {4 * time.Hour, 0, 10 * time.Minute, "DONE room 1 240-310"},
		"earlier, a later start": {-2 * time.Hour, 10 * time.Minute, 0, "DONE room 1 -110--60"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, l := leading(t)
			at := s.start(3)
			booking := channel.Booking{ExternalID: "A", Start: at, End: at.Add(time.Hour), Name: "김손님", Phone: "01055556666"}
			l.read(t, booking)
			id, _ := l.stay(t, "true")
			l.change(t, id, "1", at.Add(c.moved), at.Add(c.moved+time.Hour))
			booking.Start, booking.End = at.Add(c.start), at.Add(time.Hour+c.end)
			l.read(t, booking)
			if got := l.rows(t, at); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestRefusedChangeChangesNothing gives the guest of a partner's interface another hour or room. A change that is refused because its time is
// taken is refused again when it is repeated, whatever staff have done since, and the next change keeps the hour or the room.
func TestRefusedChangeChangesNothing(t *testing.T) {
	t.Parallel()
	s, c := leading(t)
	at := s.start(3)
	send := func(want, seq, room int, start time.Duration, phone string) {
		t.Helper()
		status, answer := s.event(t, map[string]any{
			"type": "booking.updated", "externalId": "A", "listingId": fmt.Sprintf("gangnam-%d", room), "seq": seq,
			"start": at.Add(start), "end": at.Add(start + time.Hour), "customer": map[string]string{"name": "박손님", "phone": phone},
		})
		if status != want {
			t.Errorf("update %d: %d %v, want %d", seq, status, answer, want)
		}
	}
	is := func(want string) {
		t.Helper()
		if got := c.rows(t, at); got != want {
			t.Errorf("the stay is %s, want %s", got, want)
		}
	}
	for _, room := range []int{1, 2} {
		if _, err := s.buyer().Buy(s.ctx, s.wish(room, 6, sandbox.MethodCard)); err != nil {
			t.Fatal(err)
		}
	}
	send(http.StatusOK, 1, 2, 0, "01055556666")
	id, _ := c.stay(t, "true")
	c.change(t, id, "2", at, at.Add(2*time.Hour))
	send(http.StatusConflict, 2, 2, 3*time.Hour, "01055556666")
	send(http.StatusOK, 3, 2, 0, "01055557777")
	is("DONE room 2 0-120")
	c.change(t, id, "3", at, at.Add(2*time.Hour))
	send(http.StatusConflict, 4, 1, 3*time.Hour, "01055557777")
	c.change(t, id, "3", at, at.Add(90*time.Minute))
	send(http.StatusConflict, 4, 1, 3*time.Hour, "01055557777")
	send(http.StatusOK, 5, 2, 0, "01055558888")
	is("DONE room 3 0-90")
}
