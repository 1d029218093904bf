package moneysim

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// wire is the network to the provider: an http.RoundTripper that delays and loses requests and responses, delivers requests
// after their sender has given up, and returns server errors.
type wire struct {
	w       *world
	handler http.Handler

	lost, unanswered, broken, slow float64
	away                           time.Time // start of an outage until the end of the faults; zero: none
	until                          time.Time // end of the faults
	noRefunds                      bool      // the provider declines every refund of received money for good

	mu   sync.Mutex
	sent map[string]int
}

// fate returns the random source of the n-th event with a label, independent of the goroutine.
func (n *wire) fate(label string) *rand.Rand {
	n.mu.Lock()
	n.sent[label]++
	count := n.sent[label]
	n.mu.Unlock()
	h := fnv.New64a()
	h.Write([]byte(label))
	return rand.New(rand.NewPCG(n.w.seed, h.Sum64()+uint64(count)*0x9E3779B97F4A7C15))
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

var errGone = errors.New("connection reset")

// RoundTrip implements http.RoundTripper.
func (n *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	about := n.w.about(req.URL.Path, body)
	n.w.sends(req.URL.Path, about)
	r := n.fate(req.Method + about)
	there, back := time.Millisecond+upTo(r, 100*time.Millisecond), time.Millisecond+upTo(r, 100*time.Millisecond)
	kind := r.Float64()
	away := !n.away.IsZero() && time.Now().After(n.away) && time.Now().Before(n.until)
	if time.Now().After(n.until) {
		kind = 1
	} else if r.Float64() < n.slow {
		there += upTo(r, 50*time.Second)
	}
	answered := make(chan *http.Response, 1)
	time.AfterFunc(there, func() {
		if kind -= n.lost; kind < 0 {
			return
		}
		if away { // unreachable, except for requests that arrive and whose response is lost
			if r.IntN(4) == 0 {
				n.execute(req, body, about)
			}
			return
		}
		var response *http.Response
		if kind -= n.broken; kind < 0 {
			response = (&httptest.ResponseRecorder{Code: []int{500, 502, 429, 200}[r.IntN(4)], Body: bytes.NewBufferString("<html>")}).Result()
			if r.IntN(2) == 0 { // the server fails after executing the request
				n.execute(req, body, about)
			}
		} else {
			response = n.execute(req, body, about)
		}
		if kind -= n.unanswered; kind >= 0 || time.Now().After(n.until) {
			time.AfterFunc(back, func() { answered <- response })
		}
	})
	patience := time.NewTimer(60 * time.Second)
	defer patience.Stop()
	select {
	case response := <-answered:
		return response, nil
	case <-patience.C:
		return nil, errGone
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// execute has the provider execute a request.
func (n *wire) execute(req *http.Request, body []byte, about string) *http.Response {
	cancels := strings.HasSuffix(req.URL.Path, "/cancel")
	if n.noRefunds && cancels && n.w.received(about) {
		body := bytes.NewBufferString(`{"code":"EXCEED_MAX_REFUND_DUE","message":"환불 가능 기간이 지났습니다."}`)
		return (&httptest.ResponseRecorder{Code: http.StatusForbidden, Body: body}).Result()
	}
	again := req.Clone(context.Background())
	again.RequestURI, again.Body = req.URL.RequestURI(), io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	n.w.provider(func() { n.handler.ServeHTTP(recorder, again) }, about, partOf(body))
	if req.Method == http.MethodGet && recorder.Code == http.StatusNotFound || cancels && recorder.Code != http.StatusOK {
		n.w.lag()
	}
	return recorder.Result()
}
