package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// BenchmarkUnlock measures an unlock from a guest's browser: the POST, then the event. All parts are real except the agent,
// which runs in the same process and drives no locks. The callers share the keys of six rooms.
func BenchmarkUnlock(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := servicetest.Start(b, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
			waitOnline(b, connectAgent(b, s, "gangnam", protocol.Inventory{}))
			keys := make([]string, 6)
			for i := range keys {
				keys[i] = keyFor(b, s, i+1)
			}
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
			defer client.CloseIdleConnections()
			unlock := func(key string) error {
				response, err := client.Post(s.URL+unlockPath, "application/json",
					bytes.NewReader(fmt.Appendf(nil, `{"branch":"gangnam","doorlockType":"room","key":%q}`, key)))
				if err != nil {
					return err
				}
				var body struct{ Data struct{ RequestID string } }
				err = json.NewDecoder(response.Body).Decode(&body)
				_ = response.Body.Close()
				if err != nil {
					return err
				}
				response, err = client.Get(s.URL + subscribePath + "?requestId=" + body.Data.RequestID + "&key=" + key)
				if err != nil {
					return err
				}
				defer response.Body.Close()
				event, err := io.ReadAll(response.Body)
				if err == nil && !bytes.Contains(event, []byte(`"SUCCESS"`)) {
					err = fmt.Errorf("%d: %s", response.StatusCode, event)
				}
				return err
			}
			if err := unlock(keys[0]); err != nil {
				b.Fatal(err)
			}
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			var guests sync.WaitGroup
			b.ResetTimer()
			for i := range callers {
				guests.Go(func() {
					for n := next.Add(1) - 1; n < int64(b.N); n = next.Add(1) - 1 {
						began := time.Now()
						if err := unlock(keys[i%len(keys)]); err != nil {
							b.Error(err)
							return
						}
						took[n] = time.Since(began)
					}
				})
			}
			guests.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "unlocks/s")
		})
	}
}
