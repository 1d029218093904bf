package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	floodRate   = flag.Int("flood", 300, "connections a second from a /24, and as many from a /48, in TestAgentsReturnDuringFlood")
	floodAgents = flag.Int("agents", 20, "agents that return in TestAgentsReturnDuringFlood")
)

// flood opens silent connections from an address of the source until stop is closed. Each is held until the broker closes it.
func flood(addr string, rate int, source func() net.Addr, stop <-chan struct{}) (opened *atomic.Int64, wait func()) {
	opened = new(atomic.Int64)
	var all sync.WaitGroup
	const workers, step = 8, 10 * time.Millisecond
	for range workers {
		all.Go(func() {
			began, done := time.Now(), 0
			for {
				select {
				case <-stop:
					return
				case <-time.After(step):
				}
				for due := int(time.Since(began).Seconds() * float64(rate) / workers); done < due; done++ {
					conn, err := (&net.Dialer{LocalAddr: source(), Timeout: 3 * time.Second}).Dial("tcp", addr)
					if err != nil {
						continue
					}
					opened.Add(1)
					all.Go(func() {
						defer conn.Close()
						_ = conn.SetReadDeadline(time.Now().Add(2 * connectTimeout))
						_, _ = conn.Read(make([]byte, 1))
					})
				}
			}
		})
	}
	return opened, all.Wait
}

// back connects an agent from an address and tries again as an agent does, until it is accepted or ctx ends.
func back(ctx context.Context, addr, name string, from net.IP) (attempts int, err error) {
	for attempts = 1; ; attempts++ {
		if err = try(addr, name, from); err == nil {
			return attempts, nil
		}
		select {
		case <-ctx.Done():
			return attempts, err
		case <-time.After(100*time.Millisecond + rand.N(300*time.Millisecond)):
		}
	}
}

func try(addr, name string, from net.IP) error {
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: 3 * time.Second}).Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(connectTimeout))
	if _, err := conn.Write(connectPacket(name, name, name+"-demo", 5, 10)); err != nil {
		return err
	}
	ack := make([]byte, 4)
	if _, err := io.ReadFull(conn, ack); err != nil {
		return err
	}
	if ack[0] != 0x20 || ack[3] != 0 {
		return fmt.Errorf("CONNACK %x", ack)
	}
	return nil
}

// A /24 and a /48 open silent connections. The agents return at once after a restart of the broker, which knows no address: nine of
// ten from networks of their own, one of ten from the flooding /24. Not parallel, because it uses many files.
func TestAgentsReturnDuringFlood(t *testing.T) {
	l, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		t.Skip("no IPv6: ", err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	b := start(t, func(_ *running, cfg *Config) {
		_ = cfg.Listener.Close()
		cfg.Listener = l
		cfg.Credentials = func(_ context.Context, names []string, found func(username, branch string, secretHash, publicKey []byte)) error {
			for _, name := range names {
				hash := sha256.Sum256([]byte(name + "-demo"))
				found(name, "gangnam", hash[:], nil)
			}
			return nil
		}
	})
	if conn, err := net.Dial("tcp", "[::1]:"+port); err != nil {
		t.Skip("no IPv6: ", err)
	} else {
		_ = conn.Close()
	}
	stop := make(chan struct{})
	four, waitFour := flood("127.0.0.1:"+port, *floodRate, func() net.Addr {
		return &net.TCPAddr{IP: net.IPv4(127, 9, 9, byte(1+rand.IntN(250)))}
	}, stop)
	six, waitSix := flood("[::1]:"+port, *floodRate, func() net.Addr { return &net.TCPAddr{IP: net.IPv6loopback} }, stop)
	began := time.Now()
	full := min(maxUnauthenticated, *floodRate) // until the places are taken, if there are enough strangers
	wait(t, "the flood", func() bool {
		b.admission.mu.Lock()
		defer b.admission.mu.Unlock()
		return b.admission.strangers.size() >= full
	})

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	took := make([]time.Duration, *floodAgents)
	attempts := make([]int, *floodAgents)
	var agents sync.WaitGroup
	for i := range took {
		agents.Go(func() {
			from := net.IPv4(127, 1, byte(i), 1)
			if i%10 == 9 {
				from = net.IPv4(127, 9, 9, 253)
			}
			start := time.Now()
			n, err := back(ctx, "127.0.0.1:"+port, fmt.Sprintf("agent-gangnam-%d", i), from)
			if err != nil {
				t.Errorf("agent %d after %d attempts: %v", i, n, err)
			}
			took[i], attempts[i] = time.Since(start), n
		})
	}
	agents.Wait()
	rate := func(n *atomic.Int64) int { return int(float64(n.Load()) / time.Since(began).Seconds()) }
	slices.Sort(took)
	t.Logf("%d and %d connections a second from a /24 and a /48; %d agents back: median %v, 99 %% %v, all %v, at most %d attempts",
		rate(four), rate(six), len(took), took[len(took)/2].Round(time.Millisecond), took[cmp.Or(len(took)*99/100, 1)-1].Round(time.Millisecond),
		took[len(took)-1].Round(time.Millisecond), slices.Max(attempts))
	close(stop)
	b.admission.cut()
	waitFour()
	waitSix()
}
