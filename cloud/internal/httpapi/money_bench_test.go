package httpapi_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// BenchmarkMoney reads the money screen of a branch with 100,000 payments in a month, every twentieth refunded. The sums must
// be those of the books.
func BenchmarkMoney(b *testing.B) {
	if os.Getenv("CI") != "" {
		b.Skip("fills a database")
	}
	s := servicetest.Start(b)
	for _, sql := range []string{
		`insert into branch (code, name_ko, name_en) values ('big', 'big', 'big')`,
		`insert into room (branch_id, no, enabled) select id, n, true from branch, generate_series(1, 200) n where code = 'big'`,
		`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, order_id, amount, method, paid_at)
		 select branch_id, r.id, 'DONE', 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), 'order-' || r.id || '-' || n, 20000, '카드', at
		 from room r join branch b on b.id = r.branch_id, generate_series(0, 499) n,
		      lateral (select date_trunc('month', now() - interval '40 days') + n * interval '80 minutes') t (at) where b.code = 'big'`,
		`insert into payment (reservation_id, key_set, payment_key, confirm_key, provider_status, total_amount, balance_amount, approved_at)
		 select id, 'widget', order_id, order_id, 'DONE', amount, amount, paid_at from reservation where order_id like 'order-%'`,
		`insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key, created_at)
		 select id, 'COMPLETED', '', amount, 'customer', order_id, paid_at + interval '1 minute' from reservation where order_id like 'order-%' and id % 20 = 0`,
		`insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
		 select 'paid:' || order_id, id, branch_id, order_id, 'paid', amount, paid_at from reservation where order_id like 'order-%'
		 union all select 'refunded:' || order_id, id, branch_id, order_id, 'refunded', -amount, paid_at + interval '1 minute' from reservation
		 where order_id like 'order-%' and id % 20 = 0`,
		`analyze`,
	} {
		if _, err := s.DB.Pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	month := time.Now().AddDate(0, 0, -40).In(seoul).Format("2006-01")
	hq := s.Admin(b, "hq", "hq-demo")
	var took []time.Duration
	var page struct {
		Totals struct{ Paid, Refunded int }
	}
	for b.Loop() {
		began := time.Now()
		answer := hq.Get("/v2/admin/branches/big/money?yearMonth=" + month).OK(b)
		took = append(took, time.Since(began))
		answer.Into(b, &page)
	}
	var paid, refunded int
	if err := s.DB.Pool.QueryRow(b.Context(), `
		select coalesce(sum(won) filter (where won > 0), 0), coalesce(-sum(won) filter (where won < 0), 0) from money_entry m join branch b on b.id = m.branch_id
		where b.code = 'big' and to_char(at at time zone 'Asia/Seoul', 'YYYY-MM') = $1`, month).Scan(&paid, &refunded); err != nil {
		b.Fatal(err)
	}
	if page.Totals.Paid != paid || page.Totals.Refunded != refunded || paid == 0 {
		b.Errorf("paid %d, refunded %d; the books say %d and %d", page.Totals.Paid, page.Totals.Refunded, paid, refunded)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
