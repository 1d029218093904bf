package service_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

var slowBodies = flag.Int("slow-bodies", 200, "requests without a body in TestSlowBodiesOfANetwork")

// A /24 sends requests whose bodies never come. All end within the time for a body, and a guest of another network is served
// meanwhile.
func TestSlowBodiesOfANetwork(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	addr := strings.TrimPrefix(s.Root, "http://")
	guest := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, // each look-up needs a new connection
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, 1, 1)}}).DialContext,
	}}
	var strangers sync.WaitGroup
	var atOnce, longest atomic.Int64
	began := time.Now()
	for i := range *slowBodies {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, 9, byte(1+i%250))}, Timeout: 10 * time.Second}).Dial("tcp", addr)
		if err != nil {
			atOnce.Add(1)
			continue
		}
		strangers.Go(func() {
			defer conn.Close()
			start := time.Now()
			_, _ = fmt.Fprintf(conn, "POST /api/reservation HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.ReadAll(conn); err != nil {
				if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
					t.Errorf("connection %d is still open after a minute", i)
				}
			}
			took := time.Since(start)
			if took < time.Second {
				atOnce.Add(1)
			}
			for old := longest.Load(); int64(took) > old && !longest.CompareAndSwap(old, int64(took)); old = longest.Load() {
			}
		})
	}
	sent := time.Since(began)
	ended := make(chan struct{})
	go func() { strangers.Wait(); close(ended) }()
	var took []time.Duration
	for over := false; !over; {
		start := time.Now()
		answer, err := guest.Get(s.URL + "/v2/branches")
		if err != nil {
			t.Fatalf("a guest after %v: %v", time.Since(began), err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("a guest: HTTP %d", answer.StatusCode)
		}
		took = append(took, time.Since(start))
		select {
		case <-ended:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	slices.Sort(took)
	t.Logf("%d requests without a body in %v: %d closed at once, the last cut after %v; %d look-ups of a guest: median %v, 99 %% %v, most %v",
		*slowBodies, sent.Round(time.Millisecond), atOnce.Load(), time.Duration(longest.Load()).Round(time.Millisecond),
		len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}
