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
	// maxRequests bounds what the controller remembers. When it is reached, what has no use any more is forgotten.
	maxRequests = 1024
	// spentDelay is the age of a claim after which its decided request has no use: nobody asks for it any more
	// (decisions.md 8: 7 seconds), and a grant for it would be too old.
	spentDelay = 10 * time.Second
)

// Config is what a controller needs.
type Config struct {
	Branch string
	Keys   []ed25519.PublicKey // of the cloud, for grants

	// Send hands a claim or a result to the line to the cloud, which drops it after its life. It must not block.
	Send func(m protocol.Message, life time.Duration)
	// Event is told what happens at the doors. It must not block.
	Event func(protocol.Event)

	Logger *slog.Logger
}

// Controller holds the requests of a branch and the doors they are for.
type Controller struct {
	config Config
	doors  map[string]*door
	order  []*door

	mu       sync.Mutex
	requests map[string]*request
	driving  sync.WaitGroup
	closed   bool
}

// request is what the controller knows about a request id. It lives in memory only: after a restart no nonce is known, so
// nothing can be replayed.
type request struct {
	nonce     string
	claimedAt time.Time // monotonic; the grant for nonce was issued later
	decided   bool      // granted or denied: the nonce is spent
	results   []protocol.Result
	forget    time.Time
}

// NewController takes the locks over. It does not touch them; see Relock.
func NewController(config Config, locks []Lock) *Controller {
	c := &Controller{config: config, doors: make(map[string]*door, len(locks)), requests: make(map[string]*request)}
	for _, lock := range locks {
		d := newDoor(lock, config.Event, config.Logger)
		c.doors[lock.Device] = d
		c.order = append(c.order, d)
	}
	return c
}

// Relock makes every line idle and reports how that went, in the order of the locks, and then the inputs that fail.
func (c *Controller) Relock() []protocol.SelfTest {
	tests := make([]protocol.SelfTest, len(c.order))
	for i, d := range c.order {
		tests[i] = d.relock()
	}
	for _, d := range c.order {
		tests = append(tests, d.inspect()...)
	}
	return tests
}

// Ask answers an ask with a claim. The same ask again gets the same claim while its nonce can still be used, a new one
// after that, and the results once there was a grant.
func (c *Controller) Ask(m protocol.Ask) {
	now := time.Now()
	c.mu.Lock()
	r := c.lookup(m.RequestID, now)
	if r == nil {
		c.mu.Unlock()
		c.config.Logger.Warn("too many requests at once, ask ignored", "request", m.RequestID)
		return
	}
	if r.decided {
		results := r.results
		c.mu.Unlock()
		c.send(results)
		return
	}
	if r.nonce == "" || now.Sub(r.claimedAt) > protocol.GrantAge {
		r.nonce, r.claimedAt = protocol.NewNonce(), now
		r.forget = now.Add(protocol.ResultTTL)
	}
	claim, life := protocol.Claim{RequestID: m.RequestID, Nonce: r.nonce}, protocol.GrantAge-now.Sub(r.claimedAt)
	c.mu.Unlock()
	c.config.Send(claim, life)
}

// Grant judges a grant and, once in the life of its nonce, drives the doors it names.
func (c *Controller) Grant(m protocol.Grant) {
	now := time.Now() // before the signature is checked: that takes time too
	if m.Branch != c.config.Branch {
		c.config.Logger.Warn("grant for another branch ignored", "request", m.RequestID)
		return
	}
	if err := m.Verify(c.config.Keys...); err != nil {
		c.config.Logger.Warn("grant ignored", "request", m.RequestID, "error", err)
		return
	}

	c.mu.Lock()
	r := c.lookup(m.RequestID, now)
	if r == nil || c.closed {
		c.mu.Unlock()
		return
	}
	if r.decided {
		results := r.results
		c.mu.Unlock()
		c.send(results)
		return
	}
	r.decided, r.forget = true, now.Add(protocol.ResultTTL)
	rejection := ""
	switch age := now.Sub(r.claimedAt); {
	case r.nonce != m.Nonce:
		rejection = "the nonce is not known; the agent may have restarted"
	case age > protocol.GrantAge:
		rejection = fmt.Sprintf("the grant came %v after the claim", age.Round(time.Millisecond))
	}
	notAfter := r.claimedAt.Add(protocol.GrantAge)
	c.driving.Add(len(m.Doors)) // under the lock: Close waits for what came before it
	c.mu.Unlock()

	for _, device := range m.Doors {
		go func() {
			defer c.driving.Done()
			result := protocol.Result{RequestID: m.RequestID, Device: device}
			if d := c.doors[device]; rejection != "" {
				result.Outcome, result.Detail = protocol.Dropped, rejection
			} else if d == nil {
				result.Outcome, result.Detail = protocol.Failed, "there is no such door"
			} else {
				result = d.drive(m.RequestID, m.Pulse(), notAfter)
			}
			c.recordResult(r, result)
		}()
	}
}

// Deny spends the nonce of a claim.
func (c *Controller) Deny(m protocol.Deny) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.requests[m.RequestID]; r != nil && r.nonce == m.Nonce && !r.decided {
		r.decided = true
		c.config.Logger.Info("claim denied", "request", m.RequestID, "reason", m.Reason)
	}
}

// Close takes no further requests, lets the drives under way be confirmed, and makes every line idle.
func (c *Controller) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, d := range c.order {
		d.close()
	}
	waitAtMost(time.Second, c.driving.Wait)
	var finishing sync.WaitGroup
	for _, d := range c.order {
		finishing.Go(d.finish)
	}
	waitAtMost(time.Second, finishing.Wait)
}

// within waits, but no longer than the limit: a driver that hangs must not keep the agent from stopping.
func waitAtMost(limit time.Duration, wait func()) {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// Alive reports whether every line answers. An agent with a line that hangs cannot end its pulse and is better restarted.
func (c *Controller) Alive() bool {
	for _, d := range c.order {
		if d.hangs() {
			return false
		}
	}
	return true
}

// remember finds or makes the request; nil when there are too many. The lock is held.
func (c *Controller) lookup(id string, now time.Time) *request {
	if r := c.requests[id]; r != nil {
		return r
	}
	if len(c.requests) >= maxRequests {
		c.evict(now)
	}
	if len(c.requests) >= maxRequests {
		return nil
	}
	r := &request{forget: now.Add(protocol.ResultTTL)}
	c.requests[id] = r
	return r
}

// evict forgets requests whose life is over and those that are spent. What the latter sent is still in the outbox. The
// lock is held.
func (c *Controller) evict(now time.Time) {
	for id, r := range c.requests {
		if now.After(r.forget) || r.decided && now.Sub(r.claimedAt) > spentDelay {
			delete(c.requests, id)
		}
	}
}

// recordResult remembers a result, for repeated questions, and sends it.
func (c *Controller) recordResult(r *request, result protocol.Result) {
	c.config.Logger.Info("door", "request", result.RequestID, "device", result.Device, "outcome", result.Outcome, "detail", result.Detail)
	c.mu.Lock()
	r.results = append(r.results, result)
	c.mu.Unlock()
	c.send([]protocol.Result{result})
}

func (c *Controller) send(results []protocol.Result) {
	for _, result := range results {
		c.config.Send(result, protocol.ResultTTL)
	}
}
