package httpapi_test

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// An account that ended without a deposit is in the list of a month, but not in its sums.
func TestSumsCountWhatWasPaid(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	_, err := s.DB.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, order_id, created_at, canceled_at)
		select b.id, m.id, 'CANCELED', 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), '가상계좌', 10000, 'unpaid', at, at
		from branch b join room m on m.branch_id = b.id and m.no = 2, (select '2025-10-10 12:00+09'::timestamptz as at) time where b.code = 'gangnam'`)
	if err != nil {
		t.Fatal(err)
	}
	var month struct{ Sums, Payments []any }
	s.Admin(t, "gangnam-manager", "gangnam-demo").Get("/v2/admin/branches/gangnam/money?yearMonth=2025-10").OK(t).Into(t, &month)
	if len(month.Sums) != 0 || len(month.Payments) != 1 {
		t.Errorf("sums %v and payments %v, want one payment that counts nothing", month.Sums, month.Payments)
	}
}

// A payment of a deposit moves in the list when its deposit arrives. The pages that follow begin where it was, not where it is now.
func TestPagesOfPaymentsThatChange(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	exec := func(sql string) {
		t.Helper()
		if _, err := s.DB.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, order_id, created_at, paid_at)
		select b.id, m.id, case when n = 3 then 'WAITING_FOR_DEPOSIT' else 'DONE' end, 'CUSTOMER', at, at + interval '1 hour',
		       tstzrange(at, at + interval '70 minutes'), '가상계좌', 10000, 'order-' || n, paid, case when n <> 3 then paid end
		from generate_series(1, 5) n, branch b join room m on m.branch_id = b.id and m.no = 2,
		     lateral (select '2025-01-01 00:00+09'::timestamptz + n * interval '80 minutes' as at,
		                     '2025-10-01 00:00:00.000001+09'::timestamptz + n * interval '6 minutes' as paid) time
		where b.code = 'gangnam'`)
	const path = "/v2/admin/branches/gangnam/payments?yearMonth=2025-10"
	type page struct {
		Payments []struct{ ID, OrderID string }
		Next     *string
	}
	read := func(before string) (orders []string, p page) {
		t.Helper()
		manager.Get(path+before).OK(t).Into(t, &p)
		for _, payment := range p.Payments {
			orders = append(orders, payment.OrderID)
		}
		return orders, p
	}
	first, p := read("&limit=3")
	if !slices.Equal(first, []string{"order-5", "order-4", "order-3"}) || p.Next == nil {
		t.Fatalf("got %v, next %v", first, p.Next)
	}
	exec(`update reservation set state = 'DONE', paid_at = '2025-10-02 00:00+09' where order_id = 'order-3'`)
	if second, last := read("&limit=3&before=" + *p.Next); !slices.Equal(second, []string{"order-2", "order-1"}) || last.Next != nil {
		t.Errorf("got %v after the first page, next %v", second, last.Next)
	}
	if second, _ := read("&limit=3&before=" + p.Payments[2].ID); !slices.Equal(second, []string{"order-5", "order-4", "order-2"}) {
		t.Errorf("got %v after the present place of a payment", second)
	}
	if end, last := read("&limit=2&before=" + *p.Next); len(end) != 2 || last.Next != nil {
		t.Errorf("got %v, next %v, want the last page, which is full, without a next one", end, last.Next)
	}
	if again, _ := read("&limit=3&before="); len(again) != 3 { // as in a link to the first page
		t.Errorf("got %v with an empty cursor, want the first page", again)
	}
	for _, before := range []string{"x", "0", "-", "1-" + p.Payments[0].ID, *p.Next + strings.Repeat("0", 20), "9" + *p.Next, strings.Split(*p.Next, "-")[0] + "-0"} {
		refuses(t, before, manager.Get(path+"&limit=3&before="+before), "before")
	}
}

// The sums of a month, its pages and its file contain every payment, even if there are more than one list can show.
func TestPaymentsOfAMonthAreComplete(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	const payments, cancelled = 6700, 100
	_, err := s.DB.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, method, amount, order_id, created_at, paid_at, canceled_at)
		select b.id, m.id, case when n <= $2 then 'CANCELED' else 'DONE' end, 'CUSTOMER', at, at + interval '1 hour',
		       tstzrange(at, at + interval '70 minutes'), '=홍길동', '010-1234-5678',
		       case when n % 2 = 0 then '카드' else '휴대폰' end, 10000, 'order-' || n, paid, paid, case when n <= $2 then paid end
		from generate_series(1, $1::integer) n, branch b join room m on m.branch_id = b.id and m.no = 2,
		     lateral (select '2025-01-01 00:00+09'::timestamptz + n * interval '80 minutes' as at,
		                     '2025-10-01 00:00+09'::timestamptz + n * interval '6 minutes' as paid) time
		where b.code = 'gangnam'`, payments, cancelled)
	if err != nil {
		t.Fatal(err)
	}
	type payment struct{ ID string }
	var overview struct {
		Sums []struct {
			Date, Method, State string
			Count, Amount       int
		}
		Payments []payment
	}
	const month = "yearMonth=2025-10"
	manager.Get("/v2/admin/branches/gangnam/money?"+month).OK(t).Into(t, &overview)
	count, sum, back := 0, 0, 0
	for _, s := range overview.Sums {
		if count += s.Count; s.State == "CANCELED" {
			back += s.Amount
		} else {
			sum += s.Amount
		}
	}
	want := only(t, s, `
		select concat(count(*), ' ', sum(amount) filter (where state = 'DONE'), ' ', sum(amount) filter (where state = 'CANCELED')) from reservation
		where paid_at >= '2025-10-01 00:00+09' and paid_at < '2025-11-01 00:00+09'`)
	if count != payments {
		t.Errorf("got %d payments, want %d", count, payments)
	}
	if got := strings.Join([]string{strconv.Itoa(count), strconv.Itoa(sum), strconv.Itoa(back)}, " "); got != want {
		t.Errorf("got %s payments, received and cancelled, want %s", got, want)
	}

	seen := map[string]bool{}
	page := overview.Payments
	for len(page) > 0 {
		for _, p := range page {
			if seen[p.ID] {
				t.Fatalf("payment %s is on two pages", p.ID)
			}
			seen[p.ID] = true
		}
		var next struct{ Payments []payment }
		manager.Get("/v2/admin/branches/gangnam/payments?limit=200&"+month+"&before="+page[len(page)-1].ID).OK(t).Into(t, &next)
		page = next.Payments
	}
	if len(seen) != count {
		t.Errorf("got %d payments on the pages, want %d", len(seen), count)
	}

	response, err := manager.HTTP.Get(s.URL + "/v2/admin/branches/gangnam/payments.csv?" + month)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(body), "\uFEFF"))).ReadAll()
	if err != nil || len(rows) != count+1 {
		t.Fatalf("got %d rows, %v, want %d: %.200s", len(rows), err, count+1, body)
	}
	if first := strings.Join(rows[1][2:13], "|"); first != "2025-10-01 00:06:00|'=홍길동|010-****-5678|2|2025-01-01|01:20|02:20|휴대폰|10000|9091|909" {
		t.Errorf("got first row %s", first)
	}
	if only(t, s, `select count(*)::text from audit where action = 'export.payments'`) != "1" {
		t.Error("the export was not audited")
	}

	// A refund belongs to the month in which the provider made it: it does not change the sums of the month of the payment.
	_, err = s.DB.Pool.Exec(t.Context(), `
		insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
		select e.kind, r.id, r.branch_id, r.order_id, e.kind, e.won, e.at from reservation r,
		     (values ('paid', 10000, '2025-10-31 23:59+09'::timestamptz), ('refunded', -4000, '2025-11-01 00:00+09'::timestamptz)) e (kind, won, at)
		where r.order_id = $1`, "order-1")
	if err != nil {
		t.Fatal(err)
	}
	type totals struct{ Paid, Refunded, Net int }
	for yearMonth, want := range map[string]totals{"2025-10": {10000, 0, 10000}, "2025-11": {0, 4000, -4000}} {
		var books struct{ Totals totals }
		manager.Get("/v2/admin/branches/gangnam/money?yearMonth="+yearMonth).OK(t).Into(t, &books)
		if books.Totals != want {
			t.Errorf("%s: %+v, want %+v", yearMonth, books.Totals, want)
		}
	}
}

// TestPaymentFileCountsMoney compares the amounts of the file with the books: it counts what was paid and returned, not what was
// issued or promised.
func TestPaymentFileCountsMoney(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	const month = "yearMonth=2025-10"
	for i, p := range []struct {
		state   string
		paid    bool
		entries map[string]int // of the books
	}{
		{"WAITING_FOR_DEPOSIT", false, nil},
		{"CANCELED", false, nil}, // no deposit came
		{"DONE", true, map[string]int{"paid": 10000}},
		{"DONE", true, map[string]int{"paid": 10000, "refunded": -3334}},                       // returned in part
		{"CANCELED", true, map[string]int{"paid": 10000, "refunded": -5000}},                   // half of it, by the policy
		{"CANCELING", true, map[string]int{"paid": 10000}},                                     // the bank has not transferred it
		{"CANCELED", true, map[string]int{"paid": 10000, "refunded": -6000, "outside": -4000}}, // the rest by hand
		{"CANCELED", false, map[string]int{"paid": 10000, "refunded": -10000}},                 // a deposit that came too late
		{"WAITING_FOR_DEPOSIT", false, map[string]int{"paid": 10000, "reversed": -10000}},      // a deposit that the bank took back
	} {
		order := "order-" + strconv.Itoa(i)
		_, err := s.DB.Pool.Exec(t.Context(), `
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, method, amount, order_id, created_at, paid_at, canceled_at)
			select b.id, m.id, $2, 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), '홍길동', '010-1234-5678',
			       '가상계좌', 10000, $1, at, case when $3 then at end, case when $2 in ('CANCELED', 'CANCELING') then at end
			from branch b join room m on m.branch_id = b.id and m.no = 2, lateral (select '2025-10-05 00:00+09'::timestamptz + $4 * interval '1 day' as at) time
			where b.code = 'gangnam'`, order, p.state, p.paid, i)
		for kind, won := range p.entries {
			if err == nil {
				_, err = s.DB.Pool.Exec(t.Context(), `
					insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
					select $2 || $1, id, branch_id, order_id, $2, $3, created_at from reservation where order_id = $1`, order, kind, won)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var books struct {
		Totals struct{ Paid, Refunded, Reversed, Outside int }
	}
	manager.Get("/v2/admin/branches/gangnam/money?"+month).OK(t).Into(t, &books)
	response, err := manager.HTTP.Get(s.URL + "/v2/admin/branches/gangnam/payments.csv?" + month)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	rows, err := csv.NewReader(response.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var paid, supply, vat, returned int
	var lines []string
	for _, row := range rows[1:] {
		number := func(column int) int {
			n, err := strconv.Atoi(row[column])
			if row[column] != "" && err != nil {
				t.Error(err)
			}
			return n
		}
		paid, supply, vat, returned = paid+number(10), supply+number(11), vat+number(12), returned+number(15)
		lines = append(lines, row[10]+"/"+row[15])
	}
	if want := "0/ 0/ 10000/ 10000/3334 10000/5000 10000/ 10000/10000 10000/10000 10000/10000"; strings.Join(lines, " ") != want {
		t.Errorf("got paid and returned %s, want %s", lines, want)
	}
	if all := books.Totals; paid != all.Paid || supply+vat != all.Paid || returned != all.Refunded+all.Reversed+all.Outside {
		t.Errorf("the file has %d paid (%d + %d) and %d returned, the books have %+v", paid, supply, vat, returned, all)
	}
}

// The audit log can be filtered by days and by a part of the actor's name.
func TestAuditFilter(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	s.Admin(t, "gangnam-manager", "gangnam-demo").Put("/v2/admin/branches/gangnam/rooms/1", map[string]any{"min60": 31000}).OK(t)
	today := s.Clock.Now().In(seoul)
	found := func(query string) int {
		t.Helper()
		var log struct {
			Entries []struct {
				Action string
				Detail struct{ Changes []string }
			}
		}
		hq.Get("/v2/admin/branches/gangnam/audit?action=room&"+query).OK(t).Into(t, &log)
		for _, e := range log.Entries {
			if changes := strings.Join(e.Detail.Changes, "; "); !strings.Contains(changes, "price 6000/16000/30000 → 6000/16000/31000") {
				t.Errorf("got changes %q", changes)
			}
		}
		return len(log.Entries)
	}
	day := func(days int) string { return today.AddDate(0, 0, days).Format(time.DateOnly) }
	for query, want := range map[string]int{
		"": 1, "actor=gangnam": 1, "actor=hq": 0, "from=" + day(0): 1, "from=" + day(1): 0, "to=" + day(0): 1, "to=" + day(-1): 0,
	} {
		if got := found(query); got != want {
			t.Errorf("%s: got %d entries, want %d", query, got, want)
		}
	}
	refuses(t, "no day", hq.Get("/v2/admin/branches/gangnam/audit?from=tomorrow"), "from")
}
