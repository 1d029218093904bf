package crowdsim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// apart are the differences of the replicas' clocks: a comparison with the database's clock leaves up to a second.
var apart = []time.Duration{0, time.Second, -time.Second}

// workers is the number of verbs that run concurrently.
const workers = 4

// guests is the number of guests.
const guests = 4

// world is one sequence.
type world struct {
	seed   uint64
	ctx    context.Context
	clock  *servicetest.Clock
	box    *sandbox.Sandbox
	front  *front
	addr   struct{ http, smtp, database string } // of the sandbox and of the database
	backup string                                // URL of the database with the backup

	replicas []*servicetest.Stack // of the act
	guests   []*guest
	staff    []*moneytest.Buyer // of the headquarters
	partner  partnerChannel

	mu     sync.Mutex
	counts map[string]int // verbs by their outcome
	trace  []string
}

// open starts the sandbox and makes the databases of a sequence.
func open(t *testing.T, seed uint64) *world {
	w := &world{seed: seed, ctx: t.Context(), clock: new(servicetest.Clock), counts: map[string]int{}}
	w.front = &front{world: w}
	server := httptest.NewServer(w.front)
	var err error
	w.box, err = sandbox.New(sandbox.Options{
		WebhookURL: server.URL + "/api/virtualaccount/webhook", PartnerURL: server.URL + "/partner/v1/events", RefundDelay: 50 * time.Millisecond,
		CallbackRetries: []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(http.HandlerFunc(w.serveBox))
	mail, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mailing, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.box.ServeSMTP(mailing, mail) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = w.box.Close()
		provider.Close()
		server.Close()
	})
	w.addr.http, w.addr.smtp, w.addr.database = provider.Listener.Addr().String(), mail.Addr().String(), pgtest.URL(t)
	w.backup = pgtest.URL(t)
	return w
}

// serveBox serves the sandbox, and traces what replicas request about blocks.
func (w *world) serveBox(answer http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/partner/v1/blocks" {
		w.box.ServeHTTP(answer, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	const real = "5.000" // seconds: the clock of the service jumps
	w.note("block request", time.Now().Format(real), string(body), err, w.box.Faults())
	w.box.ServeHTTP(answer, r)
	w.note("block answer", time.Now().Format(real), string(body), r.Context().Err(), w.box.Blocks())
}

// start starts the replicas of an act.
func (w *world) start(t *testing.T) {
	w.replicas = nil
	for i := range 2 + w.seed/2%2 {
		w.replicas = append(w.replicas, servicetest.StartApart(t, w.clock, apart[i], func(s *config.Settings) {
			s.HTTP.RateLimits, s.Times.SweepEvery = "off", 200*time.Millisecond
			s.Toss.RefundApprovalAbove = 7000
			s.MQTT.BrokerPeerURL = "mqtt://" + s.MQTT.Addr
			s.Database.URL, s.Sandbox.Addr, s.Sandbox.SMTPAddr = w.addr.database, w.addr.http, w.addr.smtp
		}))
	}
	w.front.serve(w.replicas)
	t.Cleanup(func() { w.front.serve(nil) }) // before the replicas stop
}

// act starts the replicas, and has the crowd carry out the verbs of an act.
func (w *world) act(t *testing.T, number uint64) {
	w.start(t)
	if number == 1 {
		w.settle(t)
	}
	w.enter(t)
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := worker; i < *steps; i += workers {
				rng := rand.New(rand.NewPCG(w.seed, number<<32|uint64(i)))
				s := &step{world: w, t: t, rng: rng, name: fmt.Sprintf("%d.%d", number, i)}
				s.run()
			}
		})
	}
	wg.Wait()
	w.checkLinks(t)
}

// settle prepares a new installation: two legal entities beside that of the settings, a second administrator and a calendar.
func (w *world) settle(t *testing.T) {
	first := w.replicas[0]
	for i, code := range entities[1:] {
		first.AddEntity(t, code, i+2)
	}
	hq := first.Admin(t, "hq", "hq-demo")
	hq.Post("/v2/admin/administrators", map[string]any{"id": "lee", "password": "lamp river nine", "role": "hq"}).OK(t)
	w.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":90,"percent":100},{"untilMinutesBefore":30,"percent":50}]`)
	w.exec(t, `update branch set compensation = $1 where code = 'gangnam'`, `{"afterMinutes":2,"extendFirst":true,"wonPerMinute":300,"fullAfterMinutes":8}`)
	w.exec(t, `
		insert into channel_listing (channel, partner, external_id, room_id, feed_url, export_token)
		select 'ical', 'spacecloud', 'calendar', r.id, 'https://feed.example/x.ics', '\x01'
		from room r join branch b on b.id = r.branch_id where b.code = 'gangnam' and r.no = 5`)
}

// enter logs the guests and administrators in: sessions of a lost act are lost, too.
func (w *world) enter(t *testing.T) {
	w.guests, w.staff = nil, nil
	for i := range guests {
		w.guests = append(w.guests, w.guest(i))
	}
	for id, password := range map[string]string{"hq": "hq-demo", "lee": "lamp river nine"} {
		b := w.browser()
		if err := b.LoginAdmin(w.ctx, id, password); err != nil {
			t.Fatal(err)
		}
		w.staff = append(w.staff, b)
	}
}

// browser returns a browser whose requests reach any replica.
func (w *world) browser() *moneytest.Buyer {
	b := moneytest.NewBuyer("http://yeolda.test/api", w.box)
	b.HTTP.Transport = w.front
	return b
}

// backUp copies the database. No service runs.
func (w *world) backUp(t *testing.T) { w.copy(t, w.addr.database, w.backup) }

// restore replaces the database by the backup, as yeolda restore does.
func (w *world) restore(t *testing.T) {
	w.copy(t, w.backup, w.addr.database)
	db, err := postgres.Open(w.ctx, w.addr.database, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.InTx(w.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRebuild(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
}

func (w *world) copy(t *testing.T, from, to string) {
	t.Helper()
	conn, err := pgx.Connect(w.ctx, pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(w.ctx)
	for _, statement := range []string{
		"drop database " + name(t, to) + " with (force)", "create database " + name(t, to) + " template " + name(t, from),
	} {
		if _, err := conn.Exec(w.ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
}

func name(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config.Database
}

func (w *world) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.replicas[0].DB.Pool.Exec(w.ctx, sql, args...); err != nil {
		t.Fatal(err)
	}
}

// rows returns the first column of a query as texts.
func (w *world) rows(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	rows, err := w.replicas[0].DB.Pool.Query(w.ctx, sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// slot returns the start of a slot, so many slots after the present one.
func (w *world) slot(n int) time.Time {
	return w.clock.Now().Truncate(10 * time.Minute).Add(time.Duration(n) * 10 * time.Minute)
}

func (w *world) note(what string, details ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
	w.trace = append(w.trace, strings.TrimSpace(w.clock.Now().Format("15:04:05.000 ")+what+" "+fmt.Sprintln(details...)))
}
