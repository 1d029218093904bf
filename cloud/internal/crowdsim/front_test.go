package crowdsim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// chosen is the header by which a step chooses its replica.
const chosen = "Crowd-Replica"

// front distributes requests over the replicas. It repeats one in three of the provider's and the partner's messages at another replica at
// the same time.
type front struct {
	*world

	mu       sync.Mutex
	replicas []*servicetest.Stack // empty: between two acts
	received []received
	failed   []string // messages that were answered with 500
}

// received is a message of the provider that was delivered.
type received struct {
	path   string
	header http.Header
	body   []byte
}

func (f *front) serve(replicas []*servicetest.Stack) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = replicas
}

// host returns the address of a replica; empty: there is none.
func (f *front) host(n int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.replicas) == 0 {
		return ""
	}
	return f.replicas[n%len(f.replicas)].Root[len("http://"):]
}

// RoundTrip sends a browser's request to the replica that its step has chosen.
func (f *front) RoundTrip(r *http.Request) (*http.Response, error) {
	n, _ := strconv.Atoi(r.Header.Get(chosen)) // 0: none is chosen
	r = r.Clone(r.Context())
	r.Header.Del(chosen)
	if r.URL.Host = f.host(n); r.URL.Host == "" {
		return nil, http.ErrServerClosed
	}
	return http.DefaultTransport.RoundTrip(r)
}

// ServeHTTP receives messages from outside.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sandbox is closed
	}
	m := received{r.URL.Path, r.Header.Clone(), body}
	f.mu.Lock()
	f.received = append(f.received, m)
	f.mu.Unlock()
	n := rand.IntN(6)
	var wg sync.WaitGroup
	if rand.IntN(3) == 0 {
		wg.Go(func() { f.deliver(r.Context(), m, n+1) })
	}
	answer := f.deliver(r.Context(), m, n)
	wg.Wait()
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the sandbox may be closed
}

// deliver sends a message to a replica.
func (f *front) deliver(ctx context.Context, m received, replica int) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.host(replica)+m.path, bytes.NewReader(m.body))
	if err != nil {
		answer.Code = http.StatusServiceUnavailable // no replica runs
		return answer
	}
	request.Header = m.header.Clone()
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		answer.Code = http.StatusServiceUnavailable
		return answer
	}
	defer response.Body.Close()
	answer.Code = response.StatusCode
	_, _ = io.Copy(answer.Body, response.Body)
	if response.StatusCode == http.StatusInternalServerError {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = append(f.failed, fmt.Sprintf("%s %s: %s", m.path, m.body, answer.Body))
	}
	return answer
}
