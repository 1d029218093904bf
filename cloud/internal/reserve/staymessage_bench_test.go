package reserve_test

import (
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// BenchmarkReminders queues reminders that become due at the rate of 50,000 an hour, for six minutes of simulated time, by sweeps at
// the usual interval. The lag of a reminder is the time from the moment it was due to its sweep, and the real time of the sweep.
func BenchmarkReminders(b *testing.B) {
	const stays = 5_000
	for b.Loop() {
		b.StopTimer()
		const interval = 5 * time.Second                                                         // the default of YEOLDA_SWEEP_EVERY
		s := servicetest.Start(b, func(c *config.Settings) { c.Times.SweepEvery = time.Minute }) // the sweeps are those below
		work := s.Replica(b)
		begin := s.Clock.Now().Truncate(10 * time.Minute).Add(3 * time.Hour)
		for _, statement := range []string{
			`insert into branch (code) select 'bench-' || n from generate_series(1, 500) n where $1::timestamptz is not null`,
			`insert into room (branch_id, no) select b.id, n from branch b, generate_series(1, 10) n where b.code like 'bench-%' and $1::timestamptz is not null`,
			`with r as (
				insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, method, amount, doorlock_key, paid_at, created_at)
				select r.branch_id, r.id, 'DONE', 'CUSTOMER', t.at, t.at + interval '1 hour', tstzrange(t.at, t.at + interval '70 minutes'), '손님',
				       '01012345678', '01012345678', '카드', 1000, gen_random_uuid(), $1::timestamptz - interval '3 hours', $1::timestamptz - interval '3 hours'
				from (select r.*, row_number() over (order by r.id) n from room r join branch b on b.id = r.branch_id where b.code like 'bench-%') r,
				     lateral (select $1::timestamptz + interval '1 hour' + r.n * interval '72 ms' as at) t
				returning id, branch_id)
			insert into message (reservation_id, branch_id, template, to_mobile, variables, state) select id, branch_id, 'reservation-confirmed', '', '', 'SENT' from r`,
		} {
			if _, err := s.DB.Pool.Exec(b.Context(), statement, begin); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		var lags []time.Duration
		previous := begin
		for at := begin.Add(interval); len(lags) < stays && at.Before(begin.Add(2*time.Hour)); at = at.Add(interval) {
			s.Clock.Stop(at)
			started := time.Now()
			if err := work.SweepStays(b.Context()); err != nil {
				b.Fatal(err)
			}
			took := time.Since(started)
			rows, err := s.DB.Pool.Query(b.Context(), `
				select m.at - interval '1 hour' from stay_message m where m.template = 'stay-reminder' and m.at - interval '1 hour' > $1 and m.at - interval '1 hour' <= $2`, previous, at)
			if err != nil {
				b.Fatal(err)
			}
			for rows.Next() {
				var due time.Time
				if err := rows.Scan(&due); err != nil {
					b.Fatal(err)
				}
				lags = append(lags, at.Sub(due)+took)
			}
			if rows.Err() != nil {
				b.Fatal(rows.Err())
			}
			previous = at
		}
		b.StopTimer()
		var queued int
		if err := s.DB.Pool.QueryRow(b.Context(), `select count(*) from message where template = 'stay-reminder'`).Scan(&queued); err != nil {
			b.Fatal(err)
		}
		if len(lags) != stays || queued != stays {
			b.Fatalf("%d reminders are recorded and %d queued, want %d", len(lags), queued, stays)
		}
		slices.Sort(lags)
		b.ReportMetric(lags[stays*99/100].Seconds(), "p99-lag-s")
		b.ReportMetric(lags[stays-1].Seconds(), "max-lag-s")
		b.StartTimer()
	}
}
