package attack

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/channel/channeltest"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// The benchmarks of this file measure a guest or an administrator during an attack (make pressure).
var (
	guesses = flag.Int("guesses", 10_000, "wrong passwords a minute in BenchmarkLoginDuringGuesses")
	bombs   = flag.Int("bombs", 1000, "calendars in BenchmarkDoorDuringCalendarBombs")
)

// BenchmarkLoginDuringGuesses sends wrong passwords for the headquarters and for made-up names from addresses of the whole
// internet for a minute, while the headquarters logs in again and again from a browser that has logged in before.
func BenchmarkLoginDuringGuesses(b *testing.B) {
	s := servicetest.Start(b, func(set *config.Settings) {
		set.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	known := s.Admin(b, "hq", "hq-demo")
	guess := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}
	defer guess.CloseIdleConnections()
	for b.Loop() {
		var took []time.Duration
		status := make([]atomic.Int64, 600)
		var all sync.WaitGroup
		const length = time.Minute
		began := time.Now()
		stop := make(chan struct{})
		all.Go(func() {
			defer close(stop)
			for i := range *guesses {
				time.Sleep(time.Until(began.Add(length * time.Duration(i) / time.Duration(*guesses))))
				all.Go(func() {
					id := "hq"
					if i%2 == 1 {
						id = fmt.Sprint("name-", rand.IntN(1_000_000))
					}
					body := fmt.Sprintf(`{"id":%q,"password":"wrong-%d"}`, id, i)
					request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.URL+"/admin/login", bytes.NewReader([]byte(body)))
					if err != nil {
						b.Error(err)
						return
					}
					request.Header.Set("Content-Type", "application/json")
					request.Header.Set("X-Forwarded-For", fmt.Sprintf("%d.%d.%d.%d", 1+rand.IntN(9), rand.IntN(256), rand.IntN(256), rand.IntN(256)))
					answer, err := guess.Do(request)
					if err != nil {
						status[0].Add(1)
						return
					}
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
					status[answer.StatusCode].Add(1)
				})
			}
		})
		for over := false; !over; {
			select {
			case <-stop:
				over = true
			case <-time.After(200 * time.Millisecond):
			}
			known.Post("/admin/logout", nil).OK(b)
			start := time.Now()
			known.Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).OK(b)
			took = append(took, time.Since(start))
		}
		all.Wait()
		if status[200].Load() > 0 {
			b.Error("a wrong password was accepted")
		}
		b.Logf("%d guesses in %v: %d wrong, %d too many, %d without an answer", *guesses, time.Since(began).Round(time.Millisecond), status[401].Load(), status[429].Load(), status[0].Load())
		report(b, "login", took)
	}
}

// BenchmarkDoorDuringCalendarBombs reads calendars that are made to cost memory or time, one after another as the service does,
// while a guest opens a door up to 20 times a second. It measures the door before that, too. The memory of a calendar is measured
// by TestCalendarBombs.
func BenchmarkDoorDuringCalendarBombs(b *testing.B) {
	s := servicetest.Start(b, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	trusted, err := s.Settings.GrantKeys()
	if err != nil {
		b.Fatal(err)
	}
	agent := agenttest.Connect(b, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(s.MQTT), Keys: []ed25519.PublicKey{trusted[0].Public().(ed25519.PublicKey)}})
	if err := agent.Publish(protocol.Heartbeat{BootID: "boot", Connection: 1}); err != nil { // its status was acknowledged before
		b.Fatal(err)
	}
	key, start := uuid.NewString(), s.Clock.Now().Add(-30*time.Minute).Truncate(10*time.Minute)
	if _, err := s.DB.Pool.Exec(b.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, doorlock_key)
		select b.id, r.id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $2::timestamptz + interval '10 minutes'), '카드', 1000, $3
		from branch b join room r on r.branch_id = b.id where b.code = 'gangnam' and r.no = 1`, start, start.Add(4*time.Hour), key); err != nil {
		b.Fatal(err)
	}
	open := func() (time.Duration, error) {
		began := time.Now()
		answer, err := http.Post(s.URL+"/door/v2/unlock", "application/json", bytes.NewReader(fmt.Appendf(nil, `{"branch":"gangnam","doorlockType":"room","key":%q}`, key)))
		if err != nil {
			return 0, err
		}
		var body struct{ Data struct{ RequestID string } }
		err = json.NewDecoder(answer.Body).Decode(&body)
		answer.Body.Close()
		if err != nil {
			return 0, err
		}
		answer, err = http.Get(s.URL + "/door/v2/unlock/subscribe?requestId=" + body.Data.RequestID + "&key=" + key)
		if err != nil {
			return 0, err
		}
		event, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err == nil && !bytes.Contains(event, []byte(`"SUCCESS"`)) {
			err = fmt.Errorf("HTTP %d: %s", answer.StatusCode, event)
		}
		return time.Since(began), err
	}
	// doors opens the door until a channel is closed.
	doors := func(over <-chan struct{}) (took []time.Duration) {
		for {
			one, err := open()
			if err != nil {
				b.Error(err)
				return took
			}
			took = append(took, one)
			select {
			case <-over:
				return took
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	for b.Loop() {
		quiet := make(chan struct{})
		time.AfterFunc(30*time.Second, func() { close(quiet) })
		report(b, "quiet-door", doors(quiet))

		over := make(chan struct{})
		var slowest time.Duration
		go func() {
			defer close(over)
			for seed := range uint64(*bombs) {
				body := channeltest.Bomb(seed, s.Clock.Now())
				began := time.Now()
				_, _, _, _ = channel.ParseCalendar(b.Context(), body, seoul, "yeolda.example", s.Clock.Now())
				slowest = max(slowest, time.Since(began))
			}
		}()
		report(b, "door", doors(over))
		b.ReportMetric(float64(slowest.Milliseconds()), "bomb-most-ms")
	}
}

// report reports the median, the 99th percentile and the largest of some durations.
func report(b *testing.B, what string, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		b.Fatalf("%s: nothing was measured", what)
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(float64(len(took)), what+"s")
	b.ReportMetric(ms(took[len(took)/2]), what+"-p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), what+"-p99-ms")
	b.ReportMetric(ms(took[len(took)-1]), what+"-most-ms")
}
