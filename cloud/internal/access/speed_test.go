package access_test

import (
	"crypto/ed25519"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
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

// lagged delays what it carries in each direction, like a long way.
type lagged struct {
	net.Conn
	out, in chan parcel
	rest    []byte
}

type parcel struct {
	due   time.Time
	bytes []byte
}

// far dials a connection with a delay each way.
func far(addr string, delay time.Duration) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		l := &lagged{Conn: conn, out: make(chan parcel, 1024), in: make(chan parcel, 1024)}
		go func() {
			for p := range l.out {
				time.Sleep(time.Until(p.due))
				if _, err := conn.Write(p.bytes); err != nil {
					return
				}
			}
		}()
		go func() {
			defer close(l.in)
			for {
				buffer := make([]byte, 4096)
				n, err := conn.Read(buffer)
				if err != nil {
					close(l.out)
					return
				}
				l.in <- parcel{time.Now().Add(delay), buffer[:n]}
			}
		}()
		return &lag{l, delay}, nil
	}
}

type lag struct {
	*lagged
	delay time.Duration
}

func (l *lag) Write(b []byte) (n int, err error) {
	defer func() {
		if recover() != nil { // the connection has ended
			err = net.ErrClosed
		}
	}()
	l.out <- parcel{time.Now().Add(l.delay), slices.Clone(b)}
	return len(b), nil
}

func (l *lag) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		p, ok := <-l.in
		if !ok {
			return 0, net.ErrClosed
		}
		time.Sleep(time.Until(p.due))
		l.rest = p.bytes
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// BenchmarkDistantUnlock measures presses, from the request to its result, at a branch to which a round trip takes 50 ms.
// Announced presses come a touch of 100 ms after their announcement.
func BenchmarkDistantUnlock(b *testing.B) {
	const presses, touch = 100, 100 * time.Millisecond
	for _, announced := range []bool{false, true} {
		name := "plain"
		if announced {
			name = "announced"
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				h := build(b)
				agenttest.Connect(b, agenttest.Config{Branch: "gangnam", Dial: far(h.addr, 25*time.Millisecond),
					Keys: []ed25519.PublicKey{h.grants.Public().(ed25519.PublicKey)}})
				h.until("the agent", func() bool { return len(h.Link.Online("gangnam")) > 0 })
				key := h.reserve(1)
				var took []time.Duration
				for range presses {
					if announced {
						if err := h.Announce(b.Context(), "gangnam", access.Room, key); err != nil {
							b.Fatal(err)
						}
						time.Sleep(touch)
					}
					began := time.Now()
					id := h.request(access.Room, key)
					if got := h.await(h.Service, id, key); got.Status != access.Success {
						b.Fatalf("got %+v", got)
					}
					took = append(took, time.Since(began))
				}
				atOnce := one[int](h, `select count(*) from event where type = $1`, "door-request.granted") -
					one[int](h, `select count(*) from event where type = $1`, "door-request.pending")
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
				b.ReportMetric(100*float64(atOnce)/presses, "at-once-%")
			}
		})
	}
}
