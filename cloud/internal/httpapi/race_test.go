package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// In each of fifty rounds, a hundred customers request the same slot at the same time. One request succeeds, all others are
// answered 409, and no deadlock occurs in the database.
func TestRaceForASlot(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, servicetest.ManyConnections)
	const customers, rounds = 100, 50
	start := slot(s, 3*time.Hour)
	var slowest time.Duration
	for round := range rounds {
		from := start.Add(time.Duration(round/6) * 2 * time.Hour)
		body := jsonValue(t, holdBody(round%6+1, from, time.Hour))
		answers := make(map[int]int)
		var (
			mu    sync.Mutex
			all   sync.WaitGroup
			ready = make(chan struct{})
		)
		for range customers {
			all.Go(func() {
				<-ready
				began := time.Now()
				status, err := post(s.URL+"/reservation", body)
				took := time.Since(began)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				answers[status]++
				slowest = max(slowest, took)
			})
		}
		close(ready)
		all.Wait()
		if answers[http.StatusOK] != 1 || answers[http.StatusConflict] != customers-1 {
			t.Errorf("round %d: %v", round, answers)
		}
	}
	overlaps := only(t, s, `
		select count(*)::text from reservation a join reservation b on a.room_id = b.room_id and a.id < b.id and a.occupied && b.occupied
		where a.state = 'HOLD' and b.state = 'HOLD'`)
	holds := only(t, s, `select count(*)::text from reservation where state = 'HOLD'`)
	deadlocks := only(t, s, `select deadlocks::text from pg_stat_database where datname = current_database()`)
	if overlaps != "0" || holds != "50" || deadlocks != "0" {
		t.Errorf("%s overlaps, %s holds, %s deadlocks", overlaps, holds, deadlocks)
	}
	t.Logf("the slowest of %d answers took %s", customers*rounds, slowest.Round(time.Millisecond))
}

// crowd is an HTTP client that keeps enough connections for many concurrent callers.
var crowd = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}, Timeout: time.Minute}

// post sends JSON and returns only the status of the answer.
func post(url, body string) (status int, err error) {
	answer, err := crowd.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
