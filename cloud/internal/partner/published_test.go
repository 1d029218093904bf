package partner_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// entries returns the times of each entry in the calendar of room 1, by its UID and revision.
func (s *fixture) entries(t *testing.T) map[string]string {
	t.Helper()
	_, body, _ := s.get(t, "/ical/gangnam/1.ics?token=the-token", "")
	list := map[string]string{}
	for _, e := range regexp.MustCompile(`(?s)(UID:.*?SEQUENCE:\d+\r\n)(DTSTART:.*?)SUMMARY`).FindAllStringSubmatch(body, -1) {
		list[e[1]] = e[2]
	}
	if len(list) == 0 {
		t.Fatalf("no entries in\n%s", body)
	}
	return list
}

// Partners compare an entry's revision: in a published calendar, two entries with one UID and one revision have the same times,
// also after the opening hours have changed.
func TestPublishedEntriesChangeWithTheirRevision(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.calendar(t, 1, "the-token")
	if _, err := s.DB.Pool.Exec(s.ctx, `update branch set schedule = (select schedule from branch where code = 'hongdae') where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	before := s.entries(t)
	if _, err := s.DB.Pool.Exec(s.ctx, `update branch set schedule = replace(schedule::text, '600', '720')::jsonb where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	after, same := s.entries(t), 0
	for revision, times := range after {
		switch was, known := before[revision]; {
		case known && was != times:
			t.Errorf("%q was %q and is %q", revision, was, times)
		case known:
			same++
		}
	}
	if same == len(after) {
		t.Error("the opening hours have not changed")
	}
}

// A reservation is published with the turnover under which it occupies its room, not with the one that the branch as last read
// names: a replica may read the branch before a change of the turnover, and the reservations after it.
func TestPublishedMarginIsTheReservations(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.calendar(t, 1, "the-token")
	if _, err := s.buyer().Buy(s.ctx, s.wish(1, 3, sandbox.MethodCard)); err != nil {
		t.Fatal(err)
	}
	before := s.entries(t)
	// Between the two reads: the room has the new turnover, and its reservation the old one.
	if _, err := s.DB.Pool.Exec(s.ctx, `update room set turnover_minutes = 30 where no = 1 and branch_id = (select id from branch where code = 'gangnam')`); err != nil {
		t.Fatal(err)
	}
	same := 0
	for revision, times := range s.entries(t) {
		switch was, known := before[revision]; {
		case known && was != times:
			t.Errorf("%q was %q and is %q", revision, was, times)
		case known:
			same++
		}
	}
	if same == 0 {
		t.Error("no entry is the same")
	}
}

// A proxy that compresses a calendar makes its tag a weak one, a cache names all tags that it has kept, and some programs look at
// the headers first.
func TestPublishedCalendarIsComparedWeakly(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.calendar(t, 1, "the-token")
	const path = "/ical/gangnam/1.ics?token=the-token"
	_, _, header := s.get(t, path, "")
	tag := header.Get("ETag")
	for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, `W/"other",W/` + tag, "*"} {
		if status, body, header := s.get(t, path, known); status != http.StatusNotModified || body != "" || header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: got %d %q %v, want 304", known, status, body, header)
		}
	}
	for _, other := range []string{`"other"`, strings.Trim(tag, `"`), ""} {
		if status, _, _ := s.get(t, path, other); status != http.StatusOK {
			t.Errorf("If-None-Match %s: got %d, want 200", other, status)
		}
	}
	head, err := http.Head(s.Root + path)
	if err != nil {
		t.Fatal(err)
	}
	_ = head.Body.Close()
	if head.StatusCode != http.StatusOK || head.Header.Get("ETag") != tag || head.Header.Get("Content-Type") != channel.CalendarType {
		t.Errorf("HEAD: got %d %v", head.StatusCode, head.Header)
	}
}

// Administrators see that entries of a calendar could not be read, or that most bookings are missing, until a complete read.
func TestUnreliableCalendarIsShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	listing := s.calendar(t, 1, "t")
	service, from := s.importing(t)
	read := func(want string, pulled channel.Pulled, fails error) {
		t.Helper()
		from.pulled, from.err = pulled, fails
		if err := service.Import(s.ctx, listing); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := s.DB.Pool.QueryRow(s.ctx, `select fetch_error from channel_listing where id = $1`, listing.ID).Scan(&got); err != nil || got != want {
			t.Errorf("shown: %q, want %q (%v)", got, want, err)
		}
	}
	at := s.start(24)
	sold := []channel.Booking{}
	for n, id := range []string{"a", "b", "c"} {
		start := at.AddDate(0, 0, n)
		sold = append(sold, channel.Booking{ExternalID: id, Start: start, End: start.Add(3600e9)})
	}
	read("", channel.Pulled{Bookings: sold}, nil)
	read("2 entries could not be read, such as x: unknown time zone Mars", channel.Pulled{Bookings: sold, Problems: []string{"x: unknown time zone Mars", "y"}}, nil)
	read("", channel.Pulled{Bookings: sold}, nil)
	read("most bookings are missing at once; none of them was cancelled", channel.Pulled{}, nil)
	read("closed", channel.Pulled{}, errors.New("closed"))
	read("", channel.Pulled{Bookings: sold}, nil)
}
