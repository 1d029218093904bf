package partner_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/partner"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// calendar lists a room of gangnam at a partner that exchanges calendars.
func (s *fixture) calendar(t *testing.T, room int, token string) postgres.Listing {
	t.Helper()
	sum := sha256.Sum256([]byte(token))
	_, err := s.DB.Pool.Exec(s.ctx, `
		insert into channel_listing (channel, partner, external_id, room_id, feed_url, export_token)
		select 'ical', 'spacecloud', b.code || '-' || r.no, r.id, 'https://feed.example/x.ics', $2
		from room r join branch b on b.id = r.branch_id where b.code = 'gangnam' and r.no = $1`, room, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	listing, err := postgres.ListingByToken(s.ctx, s.DB.Pool, "gangnam", room, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return listing
}

// leadImports keeps the service from reading calendars until the end of the test: it takes the lock of the replica that does.
func (s *fixture) leadImports(t *testing.T) {
	t.Helper()
	conn, err := s.DB.Pool.Acquire(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Hijack().Close(context.Background()) // the end of the session releases the lock
	})
	if _, err := conn.Exec(s.ctx, `select pg_advisory_lock($1)`, int64(0x79656f6c_0008)); err != nil {
		t.Fatal(err)
	}
}

func (s *fixture) get(t *testing.T, path, etag string) (status int, body string, header http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.Root+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("If-None-Match", etag)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content), response.Header
}

// A room's calendar shows occupied times including margins and no personal data, and only with the secret link.
func TestPublishedCalendar(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.start(3)
	s.calendar(t, 1, "the-token")
	if _, err := s.buyer().Buy(s.ctx, s.wish(1, 3, sandbox.MethodCard)); err != nil {
		t.Fatal(err)
	}
	status, body, header := s.get(t, "/ical/gangnam/1.ics?token=the-token", "")
	if status != 200 || header.Get("Content-Type") != "text/calendar; charset=utf-8" || header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("%d %v", status, header)
	}
	const layout = "20060102T150405Z"
	for _, want := range []string{
		"DTSTART:" + at.Add(-10*time.Minute).UTC().Format(layout), "DTEND:" + at.Add(70*time.Minute).UTC().Format(layout), "SUMMARY:예약됨",
	} {
		if !strings.Contains(body, want+"\r\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "홍길동") || strings.Contains(body, "0101234") {
		t.Errorf("the calendar contains personal data:\n%s", body)
	}
	if status, _, _ := s.get(t, "/ical/gangnam/1.ics?token=the-token", header.Get("ETag")); status != http.StatusNotModified {
		t.Errorf("conditional request: HTTP %d", status)
	}
	for _, path := range []string{
		"/ical/gangnam/1.ics", "/ical/gangnam/1.ics?token=", "/ical/gangnam/1.ics?token=another", "/ical/gangnam/2.ics?token=the-token",
		"/ical/hongdae/1.ics?token=the-token", "/ical/gangnam/1?token=the-token", "/ical/gangnam/one.ics?token=the-token",
	} {
		if status, _, _ := s.get(t, path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// A calendar whose server does not answer delays no other one.
func TestSilentCalendarDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.leadImports(t)
	for room := range 2 {
		s.calendar(t, room+1, strconv.Itoa(room))
	}
	service := s.reads(t, &feed{})
	service.ICal = &silentFirst{next: make(chan struct{})}
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if err := service.ImportFeeds(ctx); err != nil {
		t.Errorf("the second calendar was not read while the first one did not answer: %v", err)
	}
}

// Calendars that were read together are not due together, so that a partner is not asked for all of them at once.
func TestCalendarsBecomeDueOneByOne(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.leadImports(t)
	const calendars = 60
	now := s.DB.Now()
	_, err := s.DB.Pool.Exec(s.ctx, `
		insert into channel_listing (channel, partner, external_id, room_id, feed_url, fetched_at)
		select 'ical', 'partner-' || n, 'x', (select min(id) from room), 'https://feed.example/x.ics', $2 from generate_series(1, $1) n`,
		calendars, now.Add(-3*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	due, err := postgres.Feeds(s.ctx, s.DB.Pool, now.Add(-2*time.Minute), 2*time.Minute, now, calendars)
	if err != nil || len(due) == 0 || len(due) == calendars {
		t.Errorf("got %d of %d due calendars after half of the random time, want some (%v)", len(due), calendars, err)
	}
}

// silentFirst answers for the first calendar once the next one is read.
type silentFirst struct {
	reads atomic.Int32
	next  chan struct{}
}

func (f *silentFirst) Pull(ctx context.Context, _ channel.Feed) (channel.Pulled, error) {
	if f.reads.Add(1) == 2 {
		close(f.next)
	}
	select {
	case <-f.next:
		return channel.Pulled{Unchanged: true}, nil
	case <-ctx.Done():
		return channel.Pulled{}, ctx.Err()
	}
}

// A calendar that could not be read for an hour raises an alert, because the partner sells the room meanwhile. It ends when the calendar
// is read.
func TestUnreadCalendarRaisesAnAlert(t *testing.T) {
	t.Parallel()
	s := open(t)
	listing := s.calendar(t, 1, "t")
	service, from := s.importing(t)
	read := func(when string, failure error, wantAlerts int) {
		t.Helper()
		from.err = failure
		if err := service.Import(s.ctx, listing); err != nil {
			t.Fatal(err)
		}
		var open int
		err := s.DB.Pool.QueryRow(s.ctx, `select count(*) from alert where kind = 'discrepancy' and branch = 'gangnam' and subject = $1 and ended_at is null`,
			fmt.Sprintf("calendar:%d", listing.ID)).Scan(&open)
		if err != nil || open != wantAlerts {
			t.Errorf("%s: %d open alerts, want %d (%v)", when, open, wantAlerts, err)
		}
	}
	read("at the first failure", io.ErrUnexpectedEOF, 0)
	s.Clock.Advance(59 * time.Minute)
	read("after 59 minutes", io.ErrUnexpectedEOF, 0)
	s.Clock.Advance(2 * time.Minute)
	read("after 61 minutes", io.ErrUnexpectedEOF, 1)
	read("after a reading", nil, 0)
	s.Clock.Advance(2 * time.Hour)
	read("at a failure two hours later", io.ErrUnexpectedEOF, 0)
}

// feed is a partner's calendar with contents set by the test.
type feed struct {
	address string // of the last read
	pulled  channel.Pulled
	err     error
}

func (f *feed) Pull(_ context.Context, from channel.Feed) (channel.Pulled, error) {
	f.address = from.URL
	return f.pulled, f.err
}

// reads returns a service that reads the calendar.
func (s *fixture) reads(t *testing.T, from *feed) *partner.Service {
	t.Helper()
	verbs := s.Replica(t)
	return &partner.Service{DB: s.DB, Reserve: verbs, Keys: verbs.Keys, ICal: from, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// importing returns a service that imports calendars instead of the running one, and the feed that it reads.
func (s *fixture) importing(t *testing.T) (*partner.Service, *feed) {
	t.Helper()
	s.leadImports(t)
	from := &feed{}
	return s.reads(t, from), from
}

// The address of a calendar that a program of the last release has written is sealed and read; its plain text stays as long
// as such a program may need it.
func TestFeedAddressIsSealed(t *testing.T) {
	t.Parallel()
	s := open(t)
	listing := s.calendar(t, 1, "t")
	from := &feed{}
	service := s.reads(t, from)
	read := func(when string, wantText bool) {
		t.Helper()
		feeds, err := postgres.Feeds(s.ctx, s.DB.Pool, s.DB.Now().Add(time.Hour), 0, s.DB.Now(), 10)
		if err != nil || len(feeds) != 1 {
			t.Fatalf("%s: got %d due calendars, want 1 (%v)", when, len(feeds), err)
		}
		from.address = ""
		if err := service.Import(s.ctx, feeds[0]); err != nil {
			t.Fatal(err)
		}
		if want := "https://feed.example/x.ics"; from.address != want {
			t.Errorf("%s: read %q, want %q", when, from.address, want)
		}
		if text := feeds[0].FeedText; (text != "") != wantText {
			t.Errorf("%s: the plain text is %q", when, text)
		}
	}
	seal := func(until time.Duration) {
		t.Helper()
		if _, err := s.DB.Pool.Exec(s.ctx, `update channel_listing set feed_text_until = $2 where id = $1`, listing.ID, s.DB.Now().Add(until)); err != nil {
			t.Fatal(err)
		}
		if err := service.SealFeeds(s.ctx); err != nil {
			t.Fatal(err)
		}
	}
	read("written by the last release", true)
	seal(time.Hour)
	read("sealed, within a day of the upgrade", true)
	seal(0)
	read("sealed, a day after the upgrade", false)
	seal(0)
	read("sealed again", false)
}

// Bookings in a partner's calendar are imported; a conflicting one is recorded beside the existing reservation and
// displaces none. A booking missing twice frees its time.
func TestImportedCalendar(t *testing.T) {
	t.Parallel()
	s := open(t)
	listing := s.calendar(t, 1, "t")
	from := &feed{}
	service := s.reads(t, from)
	read := func(bookings ...channel.Booking) {
		t.Helper()
		from.pulled = channel.Pulled{Bookings: bookings}
		if err := service.Import(s.ctx, listing); err != nil {
			t.Fatal(err)
		}
	}
	at := s.start(3)
	booking := func(id string, hours int) channel.Booking {
		start := at.Add(time.Duration(hours) * time.Hour)
		return channel.Booking{ExternalID: id, Start: start, End: start.Add(time.Hour)}
	}
	states := func(want map[string]string) {
		t.Helper()
		for id, state := range want {
			var got string
			err := s.DB.Pool.QueryRow(s.ctx, `
				select b.status || ' ' || coalesce(r.state, '-') from partner_booking b left join reservation r on r.id = b.reservation_id
				where b.external_id = $1`, id).Scan(&got)
			if err != nil || got != state {
				t.Errorf("%s is %s, want %s (%v)", id, got, state, err)
			}
		}
	}
	ours, err := s.buyer().Buy(s.ctx, moneytest.Wish{Room: 1, Start: at, Method: sandbox.MethodCard, Mobile: "01012345678"})
	if err != nil {
		t.Fatal(err)
	}

	read(booking("A", 2), booking("B", 4), booking("over ours", 0))
	states(map[string]string{"A": "CONFIRMED DONE", "B": "CONFIRMED DONE", "over ours": "CONFLICT CONFLICT"})
	if err := s.buyer().Hold(s.ctx, s.wish(1, 5, sandbox.MethodCard)); err == nil {
		t.Error("the time of a partner's booking was sold")
	}
	var state string
	if err := s.DB.Pool.QueryRow(s.ctx, `select state from reservation where order_id = $1`, ours.OrderID).Scan(&state); err != nil || state != "DONE" {
		t.Errorf("our reservation is %s (%v)", state, err)
	}

	read(booking("A", 6), booking("over ours", 0)) // A moved; B is missing for the first time
	states(map[string]string{"A": "CONFIRMED DONE", "B": "CONFIRMED DONE"})
	read(booking("A", 6), booking("over ours", 0))
	states(map[string]string{"B": "CANCELLED CANCELED"})
	if err := s.buyer().Hold(s.ctx, s.wish(1, 7, sandbox.MethodCard)); err != nil {
		t.Errorf("the time of a booking missing twice is not free: %v", err)
	}
	if err := s.buyer().Hold(s.ctx, s.wish(1, 9, sandbox.MethodCard)); err == nil {
		t.Error("the time A moved to was sold")
	}

	// Our reservation ends, and the conflicting booking takes its place.
	id := s.id(t, ours.OrderID)
	reply, err := s.admin(t).Do(s.ctx, http.MethodDelete, "/admin/reservation/"+strconv.FormatInt(id, 10)+"?bookingStatus=paid", nil)
	must(t, reply, err)
	read(booking("A", 6), booking("over ours", 0))
	states(map[string]string{"over ours": "CONFIRMED DONE"})

	// A calendar that cannot be read, or that suddenly lacks most entries, changes nothing.
	from.err = io.ErrUnexpectedEOF
	if err := service.Import(s.ctx, listing); err != nil {
		t.Fatal(err)
	}
	states(map[string]string{"A": "CONFIRMED DONE", "over ours": "CONFIRMED DONE"})
}

// A read of a calendar is recorded before it is parsed, and a calendar that exceeds its budget, or whose reading kills
// the process, is read once an hour from then on.
func TestFeedQuarantine(t *testing.T) {
	t.Parallel()
	s := open(t)
	listing := s.calendar(t, 1, "t")
	if _, err := s.DB.Pool.Exec(s.ctx, `update channel_listing set feed_url = 'https://partner.example/1.ics' where id = $1`, listing.ID); err != nil {
		t.Fatal(err)
	}
	due := func(ago time.Duration) bool {
		t.Helper()
		now := s.DB.Now().Add(ago)
		feeds, err := postgres.Feeds(s.ctx, s.DB.Pool, now.Add(-5*time.Minute), 0, now.Add(-time.Hour), 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(feeds) == 1
	}
	service, from := s.importing(t)
	read := func(err error) {
		t.Helper()
		from.err = err
		if err := service.Import(s.ctx, listing); err != nil {
			t.Fatal(err)
		}
	}
	alerts := func() (n int) {
		t.Helper()
		if err := s.DB.Pool.QueryRow(s.ctx, `select count(*) from alert where kind = 'discrepancy' and branch = 'gangnam' and ended_at is null`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	expect := func(when string, in5, in60 bool) {
		t.Helper()
		if want := map[bool]int{true: 0, false: 1}[in5]; alerts() != want {
			t.Errorf("%s: %d open alerts, want %d", when, alerts(), want)
		}
		if now, five, hour := due(0), due(6*time.Minute), due(61*time.Minute); now || five != in5 || hour != in60 {
			t.Errorf("%s: due now %v, in 6 minutes %v, in 61 minutes %v; want false, %v, %v", when, now, five, hour, in5, in60)
		}
	}
	read(nil)
	expect("after a successful read", true, true)
	read(io.ErrUnexpectedEOF)
	expect("after a failed read", true, true)
	read(fmt.Errorf("read: %w", channel.ErrOverBudget))
	expect("after a calendar over its budget", false, true)
	read(nil)
	expect("after the calendar recovered", true, true)
	for range 4 {
		if err := postgres.BeginFetch(s.ctx, s.DB.Pool, listing.ID, s.DB.Now()); err != nil {
			t.Fatal(err)
		}
	}
	expect("after four reads that killed the process", false, true)
}
