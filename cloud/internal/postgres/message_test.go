package postgres_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func queueMessage(t testing.TB, db *postgres.DB) int64 {
	t.Helper()
	id, err := postgres.InsertMessage(t.Context(), db.Pool, booking.Message{Template: "t", Language: "ko", Mobile: "01012345678", Variables: []byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Concurrent senders claim 20 messages, each several times: each message is claimed once, and is in the end marked with its own
// provider's id.
func TestMessageIsClaimedOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const messages, senders = 20, 5
	now := time.Now().Add(time.Minute).UTC().Truncate(time.Microsecond)
	claimed := make([]atomic.Int64, messages)
	var group sync.WaitGroup
	for i := range messages {
		id := queueMessage(t, db)
		for range senders {
			group.Go(func() {
				m, err := db.ClaimMessage(t.Context(), id, now, time.Hour)
				if errors.Is(err, booking.ErrNoMessage) {
					return
				}
				if err != nil || m.ID != id || m.Attempt != 1 || m.State != booking.MessageSending {
					t.Errorf("claim of message %d: got %+v, %v", id, m, err)
				}
				claimed[i].Add(1)
				if err := db.MarkMessageSent(t.Context(), id, "alimtalk", m.Mobile+string(rune('a'+i)), now); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	for i := range claimed {
		if n := claimed[i].Load(); n != 1 {
			t.Errorf("message %d: claimed %d times, want once", i, n)
		}
	}
	var sent, providers int
	err := db.Pool.QueryRow(t.Context(), `select count(*), count(distinct provider_id) from message where state = 'SENT' and sent_at = $1`, now).Scan(&sent, &providers)
	if err != nil || sent != messages || providers != messages {
		t.Errorf("got %d messages sent with %d ids of the provider, %v; want %d", sent, providers, err, messages)
	}
}

// TestExpiredLoginCodeIsNotSent: a message with a login code is due while its code can be used, by the clock of the service, which may
// differ from the database's by any time.
func TestExpiredLoginCodeIsNotSent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	began := time.Date(2031, 2, 3, 4, 5, 0, 0, time.UTC)
	until := began.Add(3 * time.Minute)
	code := func(loginType booking.LoginType, id string, expires time.Time) booking.Message {
		t.Helper()
		if err := postgres.SetLoginCode(t.Context(), db.Pool, loginType, id, []byte{1}, []byte{2}, expires); err != nil {
			t.Fatal(err)
		}
		m := booking.Message{Template: "login-code", Language: "ko", Mobile: id, Variables: []byte{1}}
		if loginType == booking.LoginEmail {
			m.Mobile, m.Email = "", id
		}
		var err error
		if m.ID, err = postgres.InsertMessage(t.Context(), db.Pool, m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	check := func(what string, m booking.Message, attempt int, at time.Time, want bool) {
		t.Helper()
		m.Attempt = attempt
		due, err := postgres.StillDue(t.Context(), db.Pool, m, postgres.MessageKinds{Code: "login-code"}, at)
		if err != nil || due != want {
			t.Errorf("%s: due %v, %v; want %v", what, due, err, want)
		}
	}
	first, mail := code(booking.LoginMobile, "01012345678", until), code(booking.LoginEmail, "guest@example.com", until)
	for _, m := range []booking.Message{first, mail} {
		check("at once", m, 1, began, true)
		check("before it expires", m, 6, until.Add(-time.Second), true)
		check("once it has expired", m, 7, until, false)
		check("at a first attempt that is late", m, 1, until, false)
	}
	second := code(booking.LoginMobile, "01012345678", until)
	check("after another one", first, 2, began, false)
	check("the other one", second, 2, began, true)
	if used, err := postgres.UseLoginCode(t.Context(), db.Pool, booking.LoginMobile, "01012345678", []byte{1}); err != nil || !used {
		t.Fatal(used, err)
	}
	check("once it was used", second, 2, began, false)
}

// A message that is not due, or whose row another transaction has locked, is not claimed, and delays no other claim.
func TestLockedMessageIsNotClaimed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	locked, free := queueMessage(t, db), queueMessage(t, db)
	if _, err := db.ClaimMessage(t.Context(), free, time.Now().Add(-time.Hour), time.Minute); !errors.Is(err, booking.ErrNoMessage) {
		t.Errorf("claim before its time: got %v, want ErrNoMessage", err)
	}
	now := time.Now().Add(time.Minute)
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select from message where id = $1 for update`, locked); err != nil {
			return err
		}
		if _, err := db.ClaimMessage(t.Context(), locked, now, time.Minute); !errors.Is(err, booking.ErrNoMessage) {
			t.Errorf("claim of a locked message: got %v, want ErrNoMessage", err)
		}
		_, err := db.ClaimMessage(t.Context(), free, now, time.Minute)
		return err
	})
	if err != nil {
		t.Errorf("claim of another message: %v", err)
	}
	if m, err := db.ClaimMessage(t.Context(), locked, now, time.Minute); err != nil || m.ID != locked {
		t.Errorf("claim after the lock: got %+v, %v", m, err)
	}
}

// BenchmarkMessages claims and marks messages of 64 senders on a durable server, and prints the rate and the transactions that
// change something for each.
func BenchmarkMessages(b *testing.B) {
	const senders, each = 64, 20
	db, _ := durable(b)
	now := time.Now().Add(time.Hour)
	for _, n := range []int{1, senders} {
		ids := make([]int64, n*each)
		for i := range ids {
			ids[i] = queueMessage(b, db)
		}
		number := func() (n int64) {
			if err := db.Pool.QueryRow(b.Context(), `select pg_current_xact_id()::text::bigint`).Scan(&n); err != nil {
				b.Fatal(err)
			}
			return n
		}
		first, began := number(), time.Now()
		var group sync.WaitGroup
		for sender := range n {
			group.Go(func() {
				for _, id := range ids[sender*each:][:each] {
					_, err := db.ClaimMessage(b.Context(), id, now, time.Hour)
					if err == nil {
						err = db.MarkMessageSent(b.Context(), id, "sms", "p", now)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		what := map[int]string{1: "alone", senders: "batched"}[n]
		b.ReportMetric(float64(len(ids))/time.Since(began).Seconds(), what+"/s")
		b.ReportMetric(float64(number()-first-1)/float64(len(ids)), what+"-commits")
	}
}
