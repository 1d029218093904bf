package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// BenchmarkLookUp measures whether the V2 look-up slows down as the table grows: 12 rooms, 4 hours and 16 connections, with
// a thousand, a hundred thousand and a million reservations, while nothing changes and after a change of the branch before
// each look-up. Load generator and PostgreSQL share the processors with the service. The sizes are measured minutes apart, so
// their shares of a constant answer's rate are compared.
func BenchmarkLookUp(b *testing.B) {
	s := servicetest.Start(b, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	day := grow(b, s, 0, 1_000)
	url := s.URL + "/v2/branches/bench-1/reservations?baseHour=12&hours=4&date=" + day.In(seoul).Format(time.DateOnly)
	seeded := 1_000
	for _, size := range []int{1_000, 100_000, 1_000_000} {
		grow(b, s, seeded, size)
		seeded = size
		constant := constantly(b, url)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			besideConstant(b, constant, func() error { return fetchOK(url) })
		})
		b.Run(fmt.Sprintf("changed-%d", size), func(b *testing.B) {
			besideConstant(b, constant, func() error {
				_, err := s.DB.Pool.Exec(context.Background(), `update branch set revision = revision + 1 where code = 'bench-1'`)
				if err != nil {
					return err
				}
				return fetchOK(url)
			})
		})
	}
}

// grow fills the table with paid hours: 20 branches of 12 rooms, backwards from tomorrow, so that most rows are in the past as
// in a real table. It returns tomorrow, on which the first branch is full.
func grow(b *testing.B, s *servicetest.Stack, from, to int) time.Time {
	b.Helper()
	const hours = 12 // every second hour is reserved
	tomorrow := time.Now().In(seoul).AddDate(0, 0, 1)
	tomorrow = time.Date(tomorrow.Year(), tomorrow.Month(), tomorrow.Day(), 0, 0, 0, 0, seoul)
	ctx := context.Background()
	conn, err := s.DB.Pool.Acquire(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	if from > 0 && from < to {
		restartSessions(b, s, conn)
	}
	statements := []string{
		`set statement_timeout = 0`, // inserting a million rows takes long
		`insert into branch (code, name_ko) select 'bench-' || n, 'bench' from generate_series(1, 20) n on conflict do nothing`,
		`insert into room (branch_id, no, min10, min30, min60)
		select b.id, n, 1000, 2500, 4000 from branch b, generate_series(1, 12) n where b.code like 'bench-%' on conflict do nothing`,
		// The look-up does not use these indexes, and they dominate the time to fill the table.
		`alter table reservation drop constraint if exists reservation_no_overlap`,
		// Otherwise the service would give each of a million events its place during the measurement.
		`alter table reservation disable trigger reservation_event`,
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			b.Fatal(err)
		}
	}
	_, err = conn.Exec(ctx, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, paid_at)
		select r.branch_id, r.id, 'DONE', 'CUSTOMER', slot.at, slot.at + interval '1 hour', tstzrange(slot.at, slot.at + interval '70 minutes'), '카드', 4000, now()
		from generate_series($1::int, $2::int - 1) n
		cross join lateral (select $3::timestamptz - (n / ($4 * 240)) * interval '1 day' + ((n / 240 % $4 * 2 + 12) % 24) * interval '1 hour' as at) slot
		join lateral (
			select r.id, r.branch_id from room r join branch b on b.id = r.branch_id
			where b.code = 'bench-' || (n % 20 + 1) and r.no = n / 20 % 12 + 1) r on true`, from, to, tomorrow, hours)
	if err != nil {
		b.Fatal(err)
	}
	// Without a checkpoint, the database would write the pages during the measurement.
	for _, settle := range []string{`vacuum (analyze) reservation`, `checkpoint`, `alter table reservation enable trigger reservation_event`, `reset statement_timeout`} {
		if _, err := conn.Exec(ctx, settle); err != nil {
			b.Fatal(err)
		}
	}
	// The measurement starts after all upcoming reservations are synchronised to the partner.
	for waiting := 1; waiting > 0; time.Sleep(50 * time.Millisecond) {
		err := s.DB.Pool.QueryRow(ctx, `
			select count(*) from reservation r where end_at > now() and not exists (
				select from channel_block b where b.reservation_id = r.id and b.state = $1)`, postgres.BlockPlaced).Scan(&waiting)
		if err != nil {
			b.Fatal(err)
		}
	}
	return tomorrow
}

// restartSessions ends the service's sessions. A session compares the cost of its generic plans with those of the first
// executions: after the table has grown a hundredfold at once, it would plan the next thousand executions one by one. The
// service notices its lost connections while the table is filled.
func restartSessions(b *testing.B, s *servicetest.Stack, own *pgxpool.Conn) {
	b.Helper()
	_, err := own.Exec(context.Background(), `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'yeolda' and pid <> pg_backend_pid()`)
	if err != nil {
		b.Fatal(err)
	}
	s.DB.Pool.Reset() // its other sessions have ended as well
}

// round holds the figures of one round of calls.
type round struct {
	perSecond float64
	p50, p99  time.Duration
}

// rate measures three rounds of calls to do on 16 connections. It reports the median rate and the latencies of that round.
func rate(b *testing.B, unit string, do func() error) {
	b.Helper()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	var results []round
	for range 3 {
		results = append(results, measure(b, 3*time.Second, do))
	}
	report(b, unit, results)
}

// besideConstant measures rounds of a constant answer and of do in turn, because other load on the machine then slows down
// both. It reports the figures of rate, the constant's median rate, and of-constant: the median of do's rate as a share of
// the constant's rate just before.
func besideConstant(b *testing.B, constant string, do func() error) {
	b.Helper()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	var (
		constants, results []round
		shares             []float64
	)
	for range 9 {
		before := measure(b, 500*time.Millisecond, func() error { return fetchOK(constant) })
		ours := measure(b, 500*time.Millisecond, do)
		constants, results = append(constants, before), append(results, ours)
		shares = append(shares, ours.perSecond/before.perSecond)
	}
	slices.Sort(shares)
	report(b, "look-ups/s", results)
	b.ReportMetric(middle(constants).perSecond, "constant/s")
	b.ReportMetric(shares[len(shares)/2], "of-constant")
}

// measure calls do on 16 connections.
func measure(b *testing.B, length time.Duration, do func() error) round {
	b.Helper()
	const callers = 16
	var (
		all sync.WaitGroup
		mu  sync.Mutex
		run []time.Duration
	)
	began := time.Now()
	for range callers {
		all.Go(func() {
			var took []time.Duration
			for time.Since(began) < length {
				at := time.Now()
				if err := do(); err != nil {
					b.Error(err)
					return
				}
				took = append(took, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			run = append(run, took...)
		})
	}
	all.Wait()
	elapsed := time.Since(began)
	if len(run) == 0 {
		b.FailNow()
	}
	slices.Sort(run)
	return round{float64(len(run)) / elapsed.Seconds(), run[len(run)/2], run[len(run)*99/100]}
}

// middle returns the round with the median rate.
func middle(rounds []round) round {
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b round) int { return cmp.Compare(a.perSecond, b.perSecond) })
	return sorted[len(sorted)/2]
}

func report(b *testing.B, unit string, rounds []round) {
	b.Helper()
	median := middle(rounds)
	b.ReportMetric(median.perSecond, unit)
	b.ReportMetric(float64(median.p50.Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(median.p99.Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

func fetchOK(url string) error {
	answer, err := crowd.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %d", answer.StatusCode)
	}
	return nil
}

// BenchmarkHoldAndRelease measures a durably stored hold and its release over HTTP.
func BenchmarkHoldAndRelease(b *testing.B) {
	s := servicetest.Start(b, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	start := slot(s, 3*time.Hour)
	slots := make(chan map[string]any, 1000) // concurrent callers use different slots
	for i := range cap(slots) {
		slots <- holdBody(i%5+1, start.Add(time.Duration(i/5)*30*time.Minute), 20*time.Minute)
	}
	rate(b, "holds+releases/s", func() error {
		slot := <-slots
		defer func() { slots <- slot }()
		body, err := json.Marshal(slot)
		if err != nil {
			return err
		}
		answer, err := crowd.Post(s.URL+"/reservation", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("hold: %d", answer.StatusCode)
		}
		request, err := http.NewRequest(http.MethodDelete, s.URL+"/reservation", nil)
		if err != nil {
			return err
		}
		for _, cookie := range answer.Cookies() {
			request.AddCookie(cookie)
		}
		answer, err = crowd.Do(request)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		return nil
	})
}
