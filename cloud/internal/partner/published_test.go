package partner_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/channel"
)

// Partners compare an entry's revision: in a published calendar, two entries with one UID and one revision have the same times,
// also after the opening hours have changed.
func TestPublishedEntriesChangeWithTheirRevision(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.calendar(t, 1, "the-token")
	if _, err := s.DB.Pool.Exec(s.ctx, `update branch set schedule = (select schedule from branch where code = 'hongdae') where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	entries := func() map[string]string {
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
	before := entries()
	if _, err := s.DB.Pool.Exec(s.ctx, `update branch set schedule = replace(schedule::text, '600', '720')::jsonb where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	after, same := entries(), 0
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
