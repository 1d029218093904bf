package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// BenchmarkLookUpByRooms measures the V2 look-up of four hours in branches with an increasing number of rooms, reserved for
// a quarter of the time. The answer grows with the rooms, so each rate is compared with that of a constant answer of its size.
func BenchmarkLookUpByRooms(b *testing.B) {
	s := servicetest.Start(b, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	day := time.Now().In(seoul).AddDate(0, 0, 1).Format(time.DateOnly)
	for _, rooms := range []int{1, 12, 50, 200} {
		branch := fmt.Sprintf("rooms-%d", rooms)
		for _, statement := range []string{
			`insert into branch (code, name_ko) values ($1, 'bench')`,
			`insert into room (branch_id, no, min10, min30, min60) select id, n, 1000, 2500, 4000 from branch, generate_series(1, split_part($1, '-', 2)::int) n where code = $1`,
			`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, paid_at)
			 select r.branch_id, r.id, 'DONE', 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), '카드', 4000, now()
			 from room r join branch b on b.id = r.branch_id, generate_series(now(), now() + interval '2 days', interval '4 hours') at where b.code = $1`,
		} {
			if _, err := s.DB.Pool.Exec(context.Background(), statement, branch); err != nil {
				b.Fatal(err)
			}
		}
		url := s.URL + "/v2/branches/" + branch + "/reservations?baseHour=12&hours=4&date=" + day
		constant := constantly(b, url)
		b.Run(fmt.Sprint(rooms), func(b *testing.B) {
			besideConstant(b, constant, func() error { return fetchOK(url) })
		})
	}
}

// BenchmarkLookUpOfADay measures the V2 look-up of a whole day of 12 rooms, 70 % of which is reserved: while nothing changes,
// while a client asks with the ETag of its answer, and while each look-up follows a change of the branch, each beside the same
// answer without the service.
func BenchmarkLookUpOfADay(b *testing.B) {
	s := servicetest.Start(b, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	day := time.Now().In(seoul).AddDate(0, 0, 1)
	midnight := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, seoul)
	for _, statement := range []string{
		`insert into branch (code, name_ko) select 'day', 'bench' where $1::timestamptz is not null`,
		`insert into room (branch_id, no, min10, min30, min60) select id, n, 1000, 2500, 4000 from branch, generate_series(1, 12) n where code = 'day' and $1::timestamptz is not null`,
		`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, paid_at)
		 select r.branch_id, r.id, 'DONE', 'CUSTOMER', at, at + interval '70 minutes', tstzrange(at, at + interval '80 minutes'), '카드', 4000, now()
		 from room r join branch b on b.id = r.branch_id, generate_series($1::timestamptz, $1 + interval '22 hours', interval '100 minutes') at where b.code = 'day'`,
	} {
		if _, err := s.DB.Pool.Exec(context.Background(), statement, midnight); err != nil {
			b.Fatal(err)
		}
	}
	url := s.URL + "/v2/branches/day/reservations?baseHour=0&hours=24&date=" + day.Format(time.DateOnly)
	constant := constantly(b, url)
	b.Run("unchanged", func(b *testing.B) {
		besideConstant(b, constant, func() error { return fetchOK(url) })
	})
	b.Run("conditional", func(b *testing.B) {
		answer, err := crowd.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		_ = answer.Body.Close()
		besideConstant(b, constant, func() error { return fetchUnchanged(url, answer.Header.Get("ETag")) })
	})
	b.Run("changed", func(b *testing.B) {
		besideConstant(b, constant, func() error {
			_, err := s.DB.Pool.Exec(context.Background(), `update branch set revision = revision + 1 where code = $1`, "day")
			if err != nil {
				return err
			}
			return fetchOK(url)
		})
	})
}

func fetchUnchanged(url, tag string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("If-None-Match", tag)
	answer, err := crowd.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNotModified {
		return fmt.Errorf("answer %d", answer.StatusCode)
	}
	return nil
}

// constantly starts a server that sends a stored copy of an answer, and returns its address.
func constantly(b *testing.B, url string) string {
	b.Helper()
	answer, err := crowd.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	b.Cleanup(server.Close)
	return server.URL
}
