package access_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
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
