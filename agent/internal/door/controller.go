package door

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent/internal/condition"
	"github.com/yeolda/yeolda/protocol"
)

// Config configures a Controller.
type Config struct {
	Branch string
	Keys   []ed25519.PublicKey // public keys of the cloud, to verify grants; see SetKeys

	// Send queues a claim or a result for the cloud; it is dropped after its lifetime. Send must not block.
	Send func(m protocol.Message, life time.Duration)
	// Event receives door events. It must not block.
	Event func(protocol.Event)

	Logger *slog.Logger
}

// Controller holds the unlock requests of a branch and the doors they are for.
type Controller struct {
	config Config
	doors  map[string]*door
	order  []*door
	grants condition.Condition // whether grants are genuine

	mu       sync.Mutex
	keys     []ed25519.PublicKey
	requests requests
	driving  sync.WaitGroup
	closed   bool
}

// NewController takes over the locks. It does not touch them; see Relock.
func NewController(config Config, locks []Lock) *Controller {
	c := &Controller{config: config, keys: config.Keys, doors: make(map[string]*door, len(locks)), requests: newRequests()}
	c.grants.Log, c.grants.Name = config.Logger, "verifying grants"
	for _, lock := range locks {
		d := newDoor(lock, config.Event, config.Logger)
		c.doors[lock.Device] = d
		c.order = append(c.order, d)
	}
	return c
}

// Relock de-energises every line, before the first request can arrive, and reads the inputs for the first time.
func (c *Controller) Relock() {
	for _, d := range c.order {
		d.relock()
	}
	var reading sync.WaitGroup
	for _, d := range c.order {
		reading.Go(func() { d.eachInput((*input).begin) })
	}
	waitAtMost(firstReadTimeout, reading.Wait)
}

// SelfTests returns the current state of every relay line, in the order of the locks, followed by the inputs that are
// unavailable. It touches no hardware: the status and the watchdog wait for it.
func (c *Controller) SelfTests() []protocol.SelfTest {
	tests := make([]protocol.SelfTest, 0, len(c.order))
	for _, d := range c.order {
		tests = append(tests, d.selfTest())
	}
	for _, d := range c.order {
		for _, i := range d.inputs {
			if err := i.fault(); err != nil {
				tests = append(tests, protocol.SelfTest{Name: i.name + " " + d.lock.Device, Detail: protocol.Clip(err.Error())})
			}
		}
	}
	return tests
}

// SetKeys replaces the keys that verify grants.
func (c *Controller) SetKeys(keys []ed25519.PublicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = keys
}

// Ask answers an ask with a claim. While the nonce is usable, a repeated ask receives the same claim; after that it receives
// a new claim. After a grant it receives the results, also from a closed controller, which claims nothing. An ask for a door that
// this agent does not have is ignored: another agent of the branch may have it.
func (c *Controller) Ask(m protocol.Ask) {
	if !c.hasAll(m.Doors) {
		c.config.Logger.Debug("ask for unknown doors ignored", "request", m.RequestID, "doors", m.Doors)
		return
	}
	now := time.Now()
	c.mu.Lock()
	r := c.requests.add(m.RequestID, m.Doors[0], now)
	if r == nil {
		c.mu.Unlock()
		c.config.Logger.Debug("too many requests for one door, ask ignored", "request", m.RequestID, "device", m.Doors[0])
		return
	}
	if r.decided {
		results := r.results
		c.mu.Unlock()
		c.send(results)
		return
	}
	if c.closed { // the agent that is started next claims it
		c.mu.Unlock()
		return
	}
	if r.nonce == "" || now.Sub(r.claimedAt) > protocol.GrantAge {
		r.nonce, r.replaced, r.claimedAt = protocol.NewNonce(), r.nonce, now
		r.expires = now.Add(protocol.ResultTTL)
	}
	claim, life := protocol.Claim{RequestID: m.RequestID, Nonce: r.nonce}, protocol.GrantAge-now.Sub(r.claimedAt)
	c.mu.Unlock()
	c.config.Send(claim, life)
}

// Grant checks a grant and drives the doors it names, at most once per nonce. A grant for a nonce that the agent does not have
// gets the outcome unknown: an earlier run of the agent may have driven the line. One for a claim that a later one has replaced is
// dropped, so that the guest does not wait for a result on a slow connection. If the agent does not have the doors, the
// grant belongs to another agent and is ignored.
func (c *Controller) Grant(m protocol.Grant) {
	now := time.Now() // before the signature is verified, which takes time too
	err := c.verify(m)
	c.grants.Set(err)
	if err != nil {
		return
	}

	c.mu.Lock()
	r := c.requests.byID[m.RequestID]
	if c.closed {
		c.mu.Unlock()
		return
	}
	if r == nil || r.nonce != m.Nonce {
		replaced := r != nil && r.replaced == m.Nonce
		c.mu.Unlock()
		if replaced {
			c.reportUnused(m, protocol.Dropped, "the grant arrived after its claim had been replaced")
		} else {
			c.reportUnused(m, protocol.Unknown, "the nonce is unknown; the agent may have restarted")
		}
		return
	}
	if r.decided {
		results := r.results
		c.mu.Unlock()
		c.send(results)
		return
	}
	r.decided, r.expires = true, now.Add(protocol.ResultTTL)
	age, notAfter := now.Sub(r.claimedAt), r.claimedAt.Add(protocol.GrantAge)
	c.driving.Add(len(m.Doors)) // under the lock, so that Close waits for these drives
	c.mu.Unlock()

	for _, device := range m.Doors {
		go func() {
			defer c.driving.Done()
			result := protocol.Result{RequestID: m.RequestID, Device: device}
			if d := c.doors[device]; age > protocol.GrantAge {
				result.Outcome, result.Detail = protocol.Dropped, fmt.Sprintf("the grant arrived %v after the claim", age.Round(time.Millisecond))
			} else if d == nil {
				result.Outcome, result.Detail = protocol.Failed, "there is no such door"
			} else {
				result = d.drive(cause{request: m.RequestID}, m.Pulse(), notAfter)
			}
			result.Nonce = m.Nonce
			c.recordResult(r, result)
		}()
	}
}

// verify checks that a grant is for this branch and signed by the cloud.
func (c *Controller) verify(m protocol.Grant) error {
	if m.Branch != c.config.Branch {
		return fmt.Errorf("request %s: the grant is for branch %s", m.RequestID, m.Branch)
	}
	c.mu.Lock()
	keys := c.keys
	c.mu.Unlock()
	if err := m.Verify(keys...); err != nil {
		return fmt.Errorf("request %s: %w", m.RequestID, err)
	}
	return nil
}

// reportUnused answers a grant whose nonce is not that of the present claim.
func (c *Controller) reportUnused(m protocol.Grant, outcome protocol.Outcome, detail string) {
	c.config.Logger.Debug("grant not used", "request", m.RequestID, "reason", detail)
	if !c.hasAll(m.Doors) {
		return
	}
	for _, device := range m.Doors {
		c.send([]protocol.Result{{RequestID: m.RequestID, Nonce: m.Nonce, Device: device, Outcome: outcome, Detail: detail}})
	}
}

// Open drives a door for an attempt at its keypad, unless notAfter has passed, and returns the confirmed result. The caller has
// checked the right to open it.
func (c *Controller) Open(device string, source protocol.Source, notAfter time.Time) protocol.Result {
	d := c.doors[device]
	c.mu.Lock()
	if c.closed || d == nil {
		c.mu.Unlock()
		return protocol.Result{Device: device, Outcome: protocol.Failed, Detail: "there is no such door, or the agent is stopping"}
	}
	c.driving.Add(1) // under the lock, so that Close waits for this drive
	c.mu.Unlock()
	defer c.driving.Done()
	return d.drive(cause{source: source}, protocol.DefaultPulse, notAfter)
}

// Deny invalidates the nonce of a claim.
func (c *Controller) Deny(m protocol.Deny) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.requests.byID[m.RequestID]; r != nil && r.nonce == m.Nonce && !r.decided {
		r.decided = true
		c.config.Logger.Info("claim denied", "request", m.RequestID, "reason", m.Reason)
	}
}

// Idle reports whether no lock is driven and no claim waits for its grant: a restart now ends no pulse and loses no request.
func (c *Controller) Idle() bool {
	for _, d := range c.order {
		if d.driven() {
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, r := range c.requests.byID {
		if !r.decided && now.Sub(r.claimedAt) <= protocol.GrantAge {
			return false
		}
	}
	return true
}

// Close accepts no further requests, waits until the drives in progress are confirmed, and de-energises every line.
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

// waitAtMost limits a wait: a driver that hangs must not prevent the agent from stopping.
func waitAtMost(limit time.Duration, wait func()) {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// ErrLineLost is returned when a relay line that worked has failed for ten seconds. A restarted agent requests it afresh.
var ErrLineLost = errors.New("relay line lost")

// Lost returns ErrLineLost and the door, or nil if no line is lost.
func (c *Controller) Lost() error {
	for _, d := range c.order {
		if d.isLost() {
			return fmt.Errorf("%w: %s", ErrLineLost, d.lock.Device)
		}
	}
	return nil
}

// Alive reports whether no driver hangs. An agent whose driver hangs cannot end a pulse, so it must be restarted.
func (c *Controller) Alive() bool {
	for _, d := range c.order {
		if d.hangs() {
			return false
		}
	}
	return true
}

func (c *Controller) hasAll(doors []string) bool {
	for _, device := range doors {
		if c.doors[device] == nil {
			return false
		}
	}
	return true
}

// recordResult stores a result for repeated asks and sends it.
func (c *Controller) recordResult(r *request, result protocol.Result) {
	c.config.Logger.Info("door request ended", "request", result.RequestID, "device", result.Device, "outcome", result.Outcome, "detail", result.Detail)
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
