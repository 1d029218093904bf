package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/yeolda/yeolda/cloud/internal/events"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// fixture is a database with a settable clock, webhooks and a receiver.
type fixture struct {
	*events.Webhooks

	t        *testing.T
	db       *postgres.DB
	receiver *httptest.Server

	mu       sync.Mutex
	now      time.Time
	secret   string
	received []events.Event
	answer   func(events.Event) int // status; nil: 200
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: pgtest.New(t), now: time.Now().Truncate(time.Second)}
	f.db.Now = func() time.Time { f.mu.Lock(); defer f.mu.Unlock(); return f.now }
	keys, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	f.Webhooks = events.NewWebhooks(f.db, keys, slog.New(slog.DiscardHandler), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	f.receiver = httptest.NewServer(http.HandlerFunc(f.receive))
	t.Cleanup(f.receiver.Close)
	f.exec(`insert into branch (code) values ('gangnam'), ('hongdae')`)
	return f
}

func (f *fixture) exec(statement string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Pool.Exec(f.t.Context(), statement, args...); err != nil {
		f.t.Fatal(err)
	}
}

// receive verifies the signature with the library of the convention and records the event if it is accepted.
func (f *fixture) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	verifier, err := standardwebhooks.NewWebhook(f.secret)
	if err == nil {
		err = verifier.Verify(body, r.Header)
	}
	var e events.Event
	if err = errors.Join(err, json.Unmarshal(body, &e)); err != nil || r.Header.Get("webhook-id") != e.ID {
		f.t.Errorf("delivery %s: %v", body, err)
	}
	status := http.StatusOK
	if f.answer != nil {
		status = f.answer(e)
	}
	if status == http.StatusOK {
		f.received = append(f.received, e)
	}
	w.WriteHeader(status)
}

func (f *fixture) add(n events.NewWebhook) int64 {
	f.t.Helper()
	if n.URL == "" {
		n.URL = f.receiver.URL + "/hook"
	}
	id, secret, err := f.Add(f.t.Context(), n, "test")
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.secret = secret
	return id
}

// reserve adds n reservations and changes each of them twice, in turns.
func (f *fixture) reserve(n int) {
	f.exec(`insert into room (branch_id, no) select 1, i from generate_series(1, $1) i`, n)
	f.exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at)
		select branch_id, id, 'HOLD', 'CUSTOMER', '2026-12-01', '2026-12-01 01:00', tstzrange('2026-12-01', '2026-12-01 01:10'), '2026-12-01' from room`)
	for _, state := range []string{"CONFIRMING", "DONE"} {
		f.exec(`update reservation set state = $1`, state)
	}
}

// pass moves the clock and serves the webhook once.
func (f *fixture) pass(id int64, forward time.Duration) {
	f.t.Helper()
	f.mu.Lock()
	f.now = f.now.Add(forward)
	f.mu.Unlock()
	if err := f.db.PlaceEvents(f.t.Context(), true); err != nil {
		f.t.Fatal(err)
	}
	if err := f.Serve(f.t.Context(), id); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) respond(answer func(events.Event) int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// count returns the number that a query counts.
func (f *fixture) count(query string) (n int) {
	f.t.Helper()
	if err := f.db.Pool.QueryRow(f.t.Context(), query).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// ordered fails the test unless the receiver has got n events of reservations, each subject's versions in order.
func (f *fixture) ordered(n int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	versions := map[string]int64{}
	got := 0
	for _, e := range f.received {
		if !strings.HasPrefix(e.Subject, "reservation:") {
			continue
		}
		if got++; e.Version != versions[e.Subject]+1 {
			f.t.Errorf("%s: version %d after %d", e.Subject, e.Version, versions[e.Subject])
		}
		versions[e.Subject] = e.Version
	}
	if got != n {
		f.t.Errorf("%d events received, want %d", got, n)
	}
}

func down(events.Event) int { return http.StatusServiceUnavailable }

// A receiver that was away for a day less a minute has received everything afterwards, in order.
func TestReceiverAwayForADay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.add(events.NewWebhook{Types: []string{"reservation"}})
	f.respond(down)
	f.reserve(30)
	const away = 24*time.Hour - time.Minute
	for passed := time.Duration(0); passed < away; passed += 4 * time.Minute {
		f.pass(id, 4*time.Minute)
	}
	if list, err := f.List(t.Context()); err != nil || !list[0].Enabled || list[0].FailingSince == nil || list[0].Pending != 90 {
		t.Fatalf("webhook %+v, %v", list, err)
	}
	f.respond(nil)
	for range 20 {
		f.pass(id, 4*time.Minute)
	}
	f.ordered(90)
	if list, err := f.List(t.Context()); err != nil || list[0].FailingSince != nil || list[0].Pending != 0 {
		t.Errorf("webhook %+v, %v", list, err)
	}
}

// After a day without success the webhook is disabled with an alert. Enabled again, it receives everything.
func TestWebhookIsDisabledAfterADay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.add(events.NewWebhook{Types: []string{"reservation.*"}})
	f.respond(down)
	f.reserve(3)
	for range 26 * 12 {
		f.pass(id, 5*time.Minute)
	}
	list, err := f.List(t.Context())
	if err != nil || list[0].Enabled || list[0].DisabledAt == nil {
		t.Fatalf("webhook %+v, %v", list, err)
	}
	if n := f.count(`select count(*) from alert where kind = 'webhook-disabled' and ended_at is null`); n != 1 {
		t.Errorf("%d alerts", n)
	}
	f.respond(nil)
	f.pass(id, time.Hour)
	f.ordered(0)
	if err := f.Enable(t.Context(), id, true, "test"); err != nil {
		t.Fatal(err)
	}
	f.pass(id, 0)
	f.ordered(9)
	if n := f.count(`select count(*) from alert where kind = 'webhook-disabled' and ended_at is null`); n != 0 {
		t.Errorf("%d alerts", n)
	}
}

// An event that the receiver rejects holds up its subject only.
func TestOnlyTheSubjectWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.add(events.NewWebhook{Types: []string{"reservation"}})
	poison := ""
	f.respond(func(e events.Event) int {
		if poison == "" {
			poison = e.Subject
		}
		if e.Subject == poison {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	f.reserve(5)
	f.pass(id, 0)
	f.ordered(12)
	f.respond(nil)
	f.pass(id, time.Minute)
	f.ordered(15)
}

// Two processes serve one webhook: each event arrives once.
func TestTwoProcessesDeliverOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.add(events.NewWebhook{Types: []string{"reservation"}})
	f.reserve(20)
	if err := f.db.PlaceEvents(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := f.Serve(context.Background(), id); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	f.pass(id, 0)
	f.ordered(60)
}

// A receiver that is disabled or removed while it is served receives no further event.
func TestDisabledReceiverReceivesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"disabled": `update webhook set enabled = false`,
		"removed":  `delete from webhook`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			id := f.add(events.NewWebhook{})
			f.reserve(10)
			answers := 0
			f.respond(func(events.Event) int {
				if answers++; answers == 3 {
					f.exec(end)
				}
				return http.StatusOK
			})
			f.pass(id, 0)
			if got := len(f.received); got != 3 {
				t.Errorf("received %d events, want the 3 before the end", got)
			}
		})
	}
}

// A receiver compares the time of a delivery with its own, so the machine's clock does not count.
func TestDeliveryHasTheTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const ahead = 2 * time.Minute
	f.Ahead = func() time.Duration { return ahead }
	times := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { times <- r.Header.Get("webhook-timestamp") }))
	t.Cleanup(receiver.Close)
	id := f.add(events.NewWebhook{URL: receiver.URL, Types: []string{"branch.*"}})
	before := time.Now().Add(ahead).Unix()
	f.pass(id, 0)
	got, err := strconv.ParseInt(<-times, 10, 64)
	if after := time.Now().Add(ahead).Unix(); err != nil || got < before || got > after {
		t.Errorf("webhook-timestamp %d (%v), want %d to %d", got, err, before, after)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.add(events.NewWebhook{Branches: []string{"gangnam"}, Types: []string{"reservation.done"}})
	f.reserve(4)
	f.pass(id, 0)
	if len(f.received) != 4 {
		t.Fatalf("received %+v", f.received)
	}
	if err := f.Replay(t.Context(), id, 0, "test"); err != nil {
		t.Fatal(err)
	}
	f.pass(id, 0)
	if len(f.received) != 8 || f.received[0].ID != f.received[4].ID {
		t.Errorf("received %+v", f.received)
	}
	if err := f.Replay(t.Context(), id, 1<<40, "test"); !errors.Is(err, events.ErrGone) {
		t.Errorf("replay from nowhere: %v", err)
	}
	if err := f.Replay(t.Context(), 99, 0, "test"); !errors.Is(err, events.ErrNoWebhook) {
		t.Errorf("replay of no webhook: %v", err)
	}
}

// Private addresses are refused at the creation and at the connection, redirects are not followed.
func TestReceiverAddresses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for address, allowed := range map[string]bool{
		f.receiver.URL: true, "https://93.184.216.34/hook": true, "https://does-not-exist.invalid/": true, "http://127.0.0.2:1/": true,
		"http://93.184.216.34/": false, "https://10.0.0.1/": false, "http://192.168.0.1/": false, "https://169.254.169.254/latest": false,
		"https://[::1]/": false, "https://[::ffff:10.0.0.1]/": false, "https://[fd00::1]/": false, "https://0.0.0.0/": false, "https://168.63.129.16/": false,
		"ftp://93.184.216.34/": false, "https:///x": false, "https://user:word@93.184.216.34/": false, "nowhere": false, "": false,
		"https://93.184.216.34/" + strings.Repeat("a", 500): false,
	} {
		if _, _, err := f.Add(t.Context(), events.NewWebhook{URL: address}, "test"); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, _, err := f.Add(t.Context(), events.NewWebhook{URL: f.receiver.URL, Types: []string{"money.*"}}, "test"); !errors.Is(err, events.ErrType) {
		t.Errorf("unknown type: %v", err)
	}
	if _, _, err := f.Add(t.Context(), events.NewWebhook{URL: f.receiver.URL, Branches: []string{"busan"}}, "test"); !errors.Is(err, postgres.ErrNoBranch) {
		t.Errorf("unknown branch: %v", err)
	}
	// A receiver whose address became private, and one that redirects to another address, receive nothing.
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, f.receiver.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(redirecting.Close)
	id := f.add(events.NewWebhook{URL: redirecting.URL, Types: []string{"reservation"}})
	changed := f.add(events.NewWebhook{Types: []string{"reservation"}})
	f.exec(`update webhook set url = 'https://10.0.0.1/' where id = $1`, changed)
	f.reserve(1)
	f.pass(id, 0)
	f.pass(changed, 0)
	f.ordered(0)
	for webhook, want := range map[int64]string{id: "status 307", changed: "cannot be a receiver"} {
		list, err := f.Deliveries(t.Context(), webhook, 0, 10)
		if err != nil || len(list) != 3 || list[2].Error == nil || !strings.Contains(*list[2].Error, want) {
			t.Errorf("deliveries %v, %v", fmt.Sprintf("%+v", list), err)
		}
	}
}

// A receiver whose answer makes an error that is long and not ASCII is tried again after the usual delay. It was called
// twice a second, because the attempt could not be recorded.
func TestHostileAnswerIsRecorded(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "x", "xx"} { // one of them ends within a character of three bytes
		f := newFixture(t)
		calls := make(chan struct{}, 10)
		hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls <- struct{}{}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 " + prefix + strings.Repeat("가", 300) + "\r\n\r\n")) // the client may close first
			_ = conn.Close()
		}))
		t.Cleanup(hostile.Close)
		id := f.add(events.NewWebhook{URL: hostile.URL, Types: []string{"reservation"}})
		f.reserve(1)
		f.pass(id, 0)
		f.pass(id, time.Second)
		if len(calls) != 1 {
			t.Errorf("%d calls within the first delay, want 1", len(calls))
		}
		list, err := f.Deliveries(t.Context(), id, 0, 10)
		if err != nil || len(list) != 3 || list[2].Attempts != 1 || list[2].Error == nil {
			t.Errorf("deliveries %+v, %v", list, err)
		}
	}
}
