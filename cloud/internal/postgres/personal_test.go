package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// guests puts reservations of 01011112222 into a branch of one room: one paid and one registered by staff a year ago,
// and one tomorrow; with a message for each. A login code and an inquiry about a franchise are a year old, too.
func guests(t *testing.T, now time.Time) *postgres.DB {
	t.Helper()
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into room (branch_id, no) select id, 1 from branch`)
	for _, r := range []struct {
		amount int
		method string
		start  time.Time
	}{{25000, "카드", now.AddDate(-1, 0, 0)}, {0, "관리자", now.AddDate(-1, 0, 1)}, {25000, "카드", now.AddDate(0, 0, 1)}} {
		_, err := db.Pool.Exec(t.Context(), `
			with r as (
				insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, email, email_key, amount, method, paid_at)
				select branch_id, id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $3), '김서연', '010-1111-2222', '01011112222', 'Kim@example.com', 'kim@example.com', $4, $5, $1
				from room returning id, branch_id)
			insert into message (reservation_id, branch_id, template, to_mobile, variables, state, created_at)
			select id, branch_id, 'reservation-confirmed', '010-1111-2222', 'secret', 'SENT', $1 from r`,
			r.start, r.start.Add(time.Hour), r.start.Add(70*time.Minute), r.amount, r.method)
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.Pool.Exec(t.Context(), `
		insert into message (template, to_mobile, variables, state, created_at) values ('login-code', '+82 (0)10-1111-2222', 'secret', 'SENT', $1)`, now.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Pool.Exec(t.Context(), `
		insert into franchise_inquiry (name, mobile, email, region, message, created_at) values ('김서연', '010-1111-2222', ' KIM@example.com', '부산', '문의', $1)`, now.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func inquiries(t *testing.T, db *postgres.DB) (n int) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), `select count(*) from franchise_inquiry where $1`, true).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func named(t *testing.T, db *postgres.DB) (reservations, messages int) {
	t.Helper()
	err := db.Pool.QueryRow(t.Context(), `
		select (select count(*) from reservation where coalesce(name, mobile, email, mobile_key, email_key) is not null and $1),
		       (select count(*) from message where to_mobile <> '' or variables = 'secret')`, true).Scan(&reservations, &messages)
	if err != nil {
		t.Fatal(err)
	}
	return reservations, messages
}

func TestContactsAreForgottenInTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db := guests(t, now)
	keep := postgres.Retention{Paid: 5 * 366 * 24 * time.Hour, Other: 180 * 24 * time.Hour}
	for _, step := range []struct {
		at                     time.Time
		forgets                int64
		reservations, messages int
	}{
		{now, 1, 2, 1}, // staff's, and both old messages; the paid one stays, and tomorrow's
		{now, 0, 2, 1},
		{now.AddDate(5, 0, 0), 1, 1, 0}, // the paid one; tomorrow's has a day to go
		{now.AddDate(6, 0, 0), 1, 0, 0},
	} {
		n, err := postgres.Anonymise(t.Context(), db.Pool, keep, []byte("empty"), step.at, 100)
		if err != nil || n != step.forgets {
			t.Fatalf("%s: %d: %v", step.at, n, err)
		}
		if reservations, messages := named(t, db); reservations != step.reservations || messages != step.messages {
			t.Fatalf("%s: %d reservations and %d messages name somebody", step.at, reservations, messages)
		}
		if n := inquiries(t, db); n != 0 {
			t.Fatalf("%s: %d inquiries", step.at, n)
		}
	}
}

func TestOnePersonIsErased(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db := guests(t, now)
	data, err := postgres.PersonalData(t.Context(), db.Pool, "kim@example.com")
	if err != nil || strings.Count(string(data), "김서연") != 4 {
		t.Fatalf("%s: %v", data, err)
	}
	data, err = postgres.PersonalData(t.Context(), db.Pool, "01011112222")
	if err != nil || strings.Count(string(data), "login-code") != 1 || strings.Contains(string(data), "secret") {
		t.Fatalf("%s: %v", data, err)
	}
	erased, kept, err := postgres.Erase(t.Context(), db.Pool, "01011112222", []byte("empty"), now)
	if err != nil || erased != 2 || kept != 1 {
		t.Fatalf("erased %d, kept %d: %v", erased, kept, err)
	}
	if reservations, messages := named(t, db); reservations != 1 || messages != 1 {
		t.Fatalf("%d reservations and %d messages name somebody", reservations, messages)
	}
	if n := inquiries(t, db); n != 0 {
		t.Fatalf("%d inquiries", n)
	}
	var money int
	if err := db.Pool.QueryRow(t.Context(), `select sum(amount) from reservation where $1`, true).Scan(&money); err != nil || money != 50000 {
		t.Fatalf("the ledger changed: %d, %v", money, err)
	}
}
