package broker

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/protocol"
)

// BenchmarkExchange measures an ask and its claim over the embedded broker and over Mosquitto, which the cloud and the
// agents reach over TCP: sequentially among a hundred agents, and a hundred concurrently. The two brokers alternate, so that
// other load on the machine affects both; the medians of the rounds are reported.
func BenchmarkExchange(b *testing.B) {
	const agents, rounds, length = 100, 3, 2 * time.Second
	house := []exchange{embedded(b, agents)}
	if m, ok := mosquitto(b, agents); ok {
		house = append(house, m)
	}
	for _, atOnce := range []int{1, 100} {
		results := make([][]measured, len(house))
		for range rounds {
			for i, x := range house {
				results[i] = append(results[i], x.measure(b, atOnce, length))
			}
		}
		for i, x := range house {
			b.Run(fmt.Sprintf("%s/%d", x.name, atOnce), func(b *testing.B) {
				median := func(of func(measured) float64) float64 {
					values := make([]float64, rounds)
					for n, r := range results[i] {
						values[n] = of(r)
					}
					slices.Sort(values)
					return values[rounds/2]
				}
				b.ReportMetric(median(func(m measured) float64 { return m.rate }), "exchanges/s")
				b.ReportMetric(median(func(m measured) float64 { return m.p50 }), "p50-us")
				b.ReportMetric(median(func(m measured) float64 { return m.p99 }), "p99-us")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// exchange is a broker with its agents.
type exchange struct {
	name   string
	link   access.Link
	claims *claims
	agents int
}

// claims passes each claim to the caller that waits for it. It ignores other messages.
type claims struct {
	*verbs
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// Claim implements Doors.
func (c *claims) Claim(_ context.Context, _ protocol.Peer, m protocol.Claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done := c.waiting[m.RequestID]; done != nil {
		delete(c.waiting, m.RequestID)
		close(done)
	}
	return nil
}

func newClaims() *claims {
	c := &claims{verbs: newVerbs(), waiting: map[string]chan struct{}{}}
	c.devices, c.comings = make(chan heard, 1<<16), make(chan heard, 1<<16) // never read
	return c
}

// once sends an ask to an agent and waits for its claim.
func (x exchange) once(agent int) (time.Duration, error) {
	id, done := uuid.NewString(), make(chan struct{})
	x.claims.mu.Lock()
	x.claims.waiting[id] = done
	x.claims.mu.Unlock()
	began := time.Now()
	err := x.link.Send(to(branchName(agent)), protocol.Ask{RequestID: id, Doors: []string{"room_1"}})
	if err != nil {
		return 0, err
	}
	select {
	case <-done:
		return time.Since(began), nil
	case <-time.After(5 * time.Second):
		return 0, fmt.Errorf("%s: no claim within 5 s", x.name)
	}
}

type measured struct{ rate, p50, p99 float64 }

func (x exchange) measure(b *testing.B, atOnce int, length time.Duration) measured {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		took []time.Duration
		next atomic.Int64
	)
	began := time.Now()
	for range atOnce {
		wg.Go(func() {
			var mine []time.Duration
			for time.Since(began) < length {
				d, err := x.once(int(next.Add(1)) % x.agents)
				if err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, d)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	if len(took) == 0 {
		b.FailNow()
	}
	slices.Sort(took)
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return measured{float64(len(took)) / elapsed.Seconds(), us(took[len(took)/2]), us(took[len(took)*99/100])}
}

func branchName(n int) string { return fmt.Sprintf("bench-%03d", n) }

func (x exchange) populate(b *testing.B, addr string) {
	for n := range x.agents {
		a := agenttest.Connect(b, agenttest.Config{Branch: branchName(n), Dial: agenttest.TCP(addr)})
		b.Cleanup(a.Close)
	}
	for n := range x.agents {
		for deadline := time.Now().Add(10 * time.Second); ; {
			if _, err := x.once(n); err == nil {
				break
			} else if time.Now().After(deadline) {
				b.Fatal(err)
			}
		}
	}
}

func embedded(b *testing.B, agents int) exchange {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	c := newClaims()
	broker, err := New(Config{Listener: l, Doors: c, Devices: c, Climate: c, Log: slog.New(slog.DiscardHandler),
		Credentials: func(_ context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
			for n := range agents {
				if id := protocol.AgentID(branchName(n)); slices.Contains(usernames, id) {
					hash := sha256.Sum256([]byte(id + "-demo"))
					found(id, branchName(n), hash[:], nil)
				}
			}
			return nil
		}})
	if err != nil {
		b.Fatal(err)
	}
	background(b, broker.Run)
	x := exchange{"embedded", broker, c, agents}
	x.populate(b, l.Addr().String())
	return x
}

// mosquitto starts Mosquitto with connected agents. It returns false if Mosquitto is not installed.
func mosquitto(b *testing.B, agents int) (exchange, bool) {
	server, ok := newMosquitto(b)
	if !ok {
		b.Log("mosquitto is not installed: nothing to compare with")
		return exchange{}, false
	}
	c := newClaims()
	remote := NewPool(PoolConfig{Brokers: []*url.URL{{Scheme: "mqtt", Host: server.addr}}, Doors: c, Devices: c, Climate: c, Log: slog.New(slog.DiscardHandler)})
	background(b, remote.Run)
	x := exchange{"mosquitto", remote, c, agents}
	x.populate(b, server.addr)
	return x, true
}

// background runs a function until the benchmark ends.
func background(b *testing.B, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
}
