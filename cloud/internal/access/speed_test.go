package access_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/limit"
)

// BenchmarkUnlock measures an unlock from the request to its result. The agent runs in the same process; database, broker
// and sockets are real. Each caller has its own key.
func BenchmarkUnlock(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			h := build(b)
			h.agent("gangnam")
			h.exec(`insert into room (branch_id, no) select id, no from branch, generate_series(4, 100) no where code = 'gangnam'`)
			keys := make([]string, callers)
			for i := range keys {
				keys[i] = h.reserve(i + 1)
			}
			h.await(h.Service, h.request(access.Room, keys[0]), keys[0])
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			done := make(chan struct{})
			b.ResetTimer()
			for i := range callers {
				go func() {
					defer func() { done <- struct{}{} }()
					for n := next.Add(1) - 1; n < int64(b.N); n = next.Add(1) - 1 {
						began := time.Now()
						id, err := h.Request(b.Context(), "gangnam", access.Room, keys[i])
						if err != nil {
							b.Error(err)
							return
						}
						if outcome, err := h.Await(b.Context(), "", id, keys[i]); err != nil || outcome.Status != access.Success {
							b.Error(outcome, err)
							return
						}
						took[n] = time.Since(began)
					}
				}()
			}
			for range callers {
				<-done
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "unlocks/s")
		})
	}
}

// BenchmarkOneKeyHammers presses one key 10,000 times as fast as this machine can during each of 300 presses of other guests
// at the same branch. It reports theirs.
func BenchmarkOneKeyHammers(b *testing.B) {
	for b.Loop() {
		h := build(b)
		h.Limits = &limit.Limiter{DB: h.db, Key: h.keys.MAC("rate-limit", "")}
		h.agent("gangnam")
		h.exec(`insert into room (branch_id, no) select id, no from branch, generate_series(4, 40) no where code = 'gangnam'`)
		hammering := h.reserve(1)
		others := make([]string, 38)
		for i := range others {
			others[i] = h.reserve(i + 2)
		}
		h.await(h.Service, h.request(access.Room, others[0]), others[0])
		var accepted atomic.Int64
		hammer := func() {
			for range 10_000 {
				if _, err := h.Request(b.Context(), "gangnam", access.Room, hammering); err == nil {
					accepted.Add(1)
				}
			}
		}
		const presses = 300
		var took []time.Duration
		lost := 0
		for n := range presses {
			key := others[n%len(others)]
			var hammered sync.WaitGroup
			hammered.Go(hammer)
			pressed := time.Now()
			id, err := h.Request(b.Context(), "gangnam", access.Room, key)
			if err == nil {
				var outcome access.Outcome
				outcome, err = h.Await(b.Context(), "", id, key)
				if err == nil && outcome.Status != access.Success {
					err = fmt.Errorf("got %s", outcome.Status)
				}
			}
			if err != nil {
				lost++
				b.Logf("press of another guest: %v", err)
			}
			took = append(took, time.Since(pressed))
			hammered.Wait()
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(accepted.Load()), "accepted")
	}
}
