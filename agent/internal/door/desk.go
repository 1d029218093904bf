package door

import (
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

const (
	// maxRequests bounds what the desk remembers. When it is reached, what has no use any more is forgotten.
	maxRequests = 1024
	// spentAfter is the age of a claim after which its judged request has no use: nobody asks for it any more
	// (decisions.md 8: 7 seconds), and a grant for it would be too old.
	spentAfter = 10 * time.Second
)

// Config is what a desk needs.
type Config struct {
	Branch string
	Keys   []ed25519.PublicKey // of the cloud, for grants

	// Send hands a claim or a result to the line to the cloud, which drops it after its life. It must not block.
	Send func(m protocol.Message, life time.Duration)
	// Event is told what happens at the doors. It must not block.
	Event func(protocol.Event)

	Logger *slog.Logger
}

// Desk holds the requests of a branch and the doors they are for.
type Desk struct {
	config Config
	doors  map[string]*door
	order  []*door

	mu       sync.Mutex
	requests map[string]*request
	driving  sync.WaitGroup
	closed   bool
}

// request is what the desk knows about a request id. It lives in memory only: after a restart no nonce is known, so
// nothing can be replayed.
type request struct {
	nonce     string
	claimedAt time.Time // monotonic; the grant for nonce was issued later
	judged    bool      // granted or denied: the nonce is spent
	results   []protocol.Result
	forget    time.Time
}

// NewDesk takes the locks over. It does not touch them; see Relock.
func NewDesk(config Config, locks []Lock) *Desk {
	k := &Desk{config: config, doors: make(map[string]*door, len(locks)), requests: make(map[string]*request)}
	for _, lock := range locks {
		d := newDoor(lock, config.Event, config.Logger)
		k.doors[lock.Device] = d
		k.order = append(k.order, d)
	}
	return k
}

// Relock makes every line idle and reports how that went, in the order of the locks, and then the inputs that fail.
func (k *Desk) Relock() []protocol.SelfTest {
	tests := make([]protocol.SelfTest, len(k.order))
	for i, d := range k.order {
		tests[i] = d.relock()
	}
	for _, d := range k.order {
		tests = append(tests, d.inspect()...)
	}
	return tests
}

// Ask answers an ask with a claim. The same ask again gets the same claim while its nonce can still be used, a new one
// after that, and the results once there was a grant.
func (k *Desk) Ask(m protocol.Ask) {
	now := time.Now()
	k.mu.Lock()
	r := k.remember(m.RequestID, now)
	if r == nil {
		k.mu.Unlock()
		k.config.Logger.Warn("too many requests at once, ask ignored", "request", m.RequestID)
		return
	}
	if r.judged {
		results := r.results
		k.mu.Unlock()
		k.send(results)
		return
	}
	if r.nonce == "" || now.Sub(r.claimedAt) > protocol.GrantAge {
		r.nonce, r.claimedAt = protocol.NewNonce(), now
		r.forget = now.Add(protocol.ResultLife)
	}
	claim, life := protocol.Claim{RequestID: m.RequestID, Nonce: r.nonce}, protocol.GrantAge-now.Sub(r.claimedAt)
	k.mu.Unlock()
	k.config.Send(claim, life)
}

// Grant judges a grant and, once in the life of its nonce, drives the doors it names.
func (k *Desk) Grant(m protocol.Grant) {
	now := time.Now() // before the signature is checked: that takes time too
	if m.Branch != k.config.Branch {
		k.config.Logger.Warn("grant for another branch ignored", "request", m.RequestID)
		return
	}
	if err := m.Verify(k.config.Keys...); err != nil {
		k.config.Logger.Warn("grant ignored", "request", m.RequestID, "error", err)
		return
	}

	k.mu.Lock()
	r := k.remember(m.RequestID, now)
	if r == nil || k.closed {
		k.mu.Unlock()
		return
	}
	if r.judged {
		results := r.results
		k.mu.Unlock()
		k.send(results)
		return
	}
	r.judged, r.forget = true, now.Add(protocol.ResultLife)
	refusal := ""
	switch age := now.Sub(r.claimedAt); {
	case r.nonce != m.Nonce:
		refusal = "the nonce is not known; the agent may have restarted"
	case age > protocol.GrantAge:
		refusal = fmt.Sprintf("the grant came %v after the claim", age.Round(time.Millisecond))
	}
	notAfter := r.claimedAt.Add(protocol.GrantAge)
	k.driving.Add(len(m.Doors)) // under the lock: Close waits for what came before it
	k.mu.Unlock()

	for _, device := range m.Doors {
		go func() {
			defer k.driving.Done()
			result := protocol.Result{RequestID: m.RequestID, Device: device}
			if d := k.doors[device]; refusal != "" {
				result.Outcome, result.Detail = protocol.Dropped, refusal
			} else if d == nil {
				result.Outcome, result.Detail = protocol.Failed, "there is no such door"
			} else {
				result = d.drive(m.RequestID, m.Pulse(), notAfter)
			}
			k.settle(r, result)
		}()
	}
}

// Deny spends the nonce of a claim.
func (k *Desk) Deny(m protocol.Deny) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.requests[m.RequestID]; r != nil && r.nonce == m.Nonce && !r.judged {
		r.judged = true
		k.config.Logger.Info("claim denied", "request", m.RequestID, "reason", m.Reason)
	}
}

// Close takes no further requests, lets the drives under way be confirmed, and makes every line idle.
func (k *Desk) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	for _, d := range k.order {
		d.close()
	}
	within(time.Second, k.driving.Wait)
	var finishing sync.WaitGroup
	for _, d := range k.order {
		finishing.Go(d.finish)
	}
	within(time.Second, finishing.Wait)
}

// within waits, but no longer than the limit: a driver that hangs must not keep the agent from stopping.
func within(limit time.Duration, wait func()) {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// Alive reports whether every line answers. An agent with a line that hangs cannot end its pulse and is better restarted.
func (k *Desk) Alive() bool {
	for _, d := range k.order {
		if d.hangs() {
			return false
		}
	}
	return true
}

// remember finds or makes the request; nil when there are too many. The lock is held.
func (k *Desk) remember(id string, now time.Time) *request {
	if r := k.requests[id]; r != nil {
		return r
	}
	if len(k.requests) >= maxRequests {
		k.tidy(now)
	}
	if len(k.requests) >= maxRequests {
		return nil
	}
	r := &request{forget: now.Add(protocol.ResultLife)}
	k.requests[id] = r
	return r
}

// tidy forgets requests whose life is over and those that are spent. What the latter sent is still in the outbox. The
// lock is held.
func (k *Desk) tidy(now time.Time) {
	for id, r := range k.requests {
		if now.After(r.forget) || r.judged && now.Sub(r.claimedAt) > spentAfter {
			delete(k.requests, id)
		}
	}
}

// settle remembers a result, for repeated questions, and sends it.
func (k *Desk) settle(r *request, result protocol.Result) {
	k.config.Logger.Info("door", "request", result.RequestID, "device", result.Device, "outcome", result.Outcome, "detail", result.Detail)
	k.mu.Lock()
	r.results = append(r.results, result)
	k.mu.Unlock()
	k.send([]protocol.Result{result})
}

func (k *Desk) send(results []protocol.Result) {
	for _, result := range results {
		k.config.Send(result, protocol.ResultLife)
	}
}
