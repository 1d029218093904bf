package doorsim

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
	"github.com/yeolda/yeolda/protocol/model"
)

// The intervals of the cloud, as in cloud/internal/access.
const (
	reportLimit = 6900 * time.Millisecond // the age at which a granted request ends: a little before its subscribers give up
	grace       = 100 * time.Millisecond
	announceTTL = 2 * time.Second
	claimTTL    = protocol.GrantAge / 2
	sweepEvery  = 500 * time.Millisecond
	orphanAge   = 2 * protocol.RepeatInterval
)

// cloud is the cloud's side: the table, which survives a crash, and a process, which does not.
type cloud struct {
	w *fixture

	mu      sync.Mutex
	table   model.Table
	active  *pi
	started int                      // counts the processes; odd: it runs
	ours    map[string]int           // requests that this process asks for
	awaited map[string]*announcement // announced presses, by the ids that their requests will have
	ended   map[string]model.State   // state when first seen final
	revoked map[string]time.Time     // keys, and when they were cancelled
	failed  map[string]time.Time     // when FAILED was decided
	at      map[string]time.Duration // when requests were made, since the start
}

func newCloud(w *fixture) *cloud {
	c := &cloud{w: w, active: w.pi, ours: map[string]int{}, awaited: map[string]*announcement{}, ended: map[string]model.State{}, revoked: map[string]time.Time{},
		failed: map[string]time.Time{}, at: map[string]time.Duration{}}
	c.table.Activate(w.pi.from)
	for range w.others {
		c.table.Enroll(branch)
	}
	if w.thief != noThief {
		c.table.Enroll(branch)
	}
	return c
}

// start starts a process, which first ends or continues the requests of an earlier one.
func (c *cloud) start() {
	c.mu.Lock()
	c.started++
	c.ours, c.awaited = map[string]int{}, map[string]*announcement{}
	process := c.started
	c.mu.Unlock()
	c.w.note("cloud starts")
	c.sweep(process)
}

func (c *cloud) crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started++
	c.w.note("cloud crashes")
}

func (c *cloud) runs(process int) bool { return c.started == process && process%2 == 1 }

// announcement is an announced press, in the memory of a process.
type announcement struct {
	device, key string
	nonce       string // of the claim; empty: it has not arrived
	from        protocol.Agent
	claimed     time.Time
}

// announce asks for a claim ahead of a press with the key.
func (c *cloud) announce(id, device string, doors []string, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.runs(c.started) || c.gone(key) {
		return
	}
	c.w.count("announced")
	c.w.note("%s announced for %s by %q", id, device, key)
	a := &announcement{device: device, key: key}
	c.awaited[id] = a
	c.sendTo(c.active.from, protocol.Ask{RequestID: id, Doors: doors}, id)
	time.AfterFunc(announceTTL, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.awaited[id] != a {
			return
		}
		delete(c.awaited, id)
		if a.nonce != "" {
			c.w.count("claims discarded")
			c.sendTo(a.from, protocol.Deny{RequestID: id, Nonce: a.nonce, Reason: "announced and not pressed"}, id)
		}
	})
}

// take returns the announcement of a press whose claim is fresh, and its id.
func (c *cloud) take(device, key string) (id string, a *announcement) {
	for _, id := range slices.Sorted(maps.Keys(c.awaited)) {
		if a := c.awaited[id]; a.device == device && a.key == key && a.nonce != "" && time.Since(a.claimed) <= claimTTL {
			delete(c.awaited, id)
			return id, a
		}
	}
	return "", nil
}

// gone reports whether a key opens nothing any more.
func (c *cloud) gone(key string) bool {
	at, revoked := c.revoked[key]
	return key != "" && revoked && !time.Now().Before(at)
}

// press requests doors. It does nothing while the cloud is down. A press that was announced and whose claim is there is granted
// in the statement that writes its row.
func (c *cloud) press(id, device string, doors []string, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	process := c.started
	if !c.runs(process) {
		return
	}
	if c.gone(key) {
		return // the key is invalid
	}
	announced, a := c.take(device, key)
	if a != nil {
		id = announced
	}
	c.w.note("%s pressed for %s by %q", id, device, key)
	c.table.Insert(model.Row{ID: id, Branch: branch, Device: device, Doors: doors, Key: key, Created: time.Now(), State: model.Pending})
	c.ours[id] = process
	var granted []string
	if a != nil {
		granted = c.table.Grant(id, a.from, a.nonce, true, c.now())
	}
	if granted != nil {
		c.w.count("granted at once")
		c.grant(a.from, id, a.nonce, granted)
	} else {
		c.ask(id)
	}
	time.AfterFunc(protocol.RepeatInterval, func() { c.proceed(process, id) })
}

// revoke cancels the reservation behind a key.
func (c *cloud) revoke(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, already := c.revoked[key]; !already {
		c.revoked[key] = time.Now()
		c.w.note("%q cancelled", key)
	}
}

// ask sends the ask to the active agent.
func (c *cloud) ask(id string) {
	c.sendTo(c.active.from, protocol.Ask{RequestID: id, Doors: c.table.Row(id).Doors}, id)
}

// sendTo sends a message to one agent. A thief hears it, and with shared topics every Pi does.
func (c *cloud) sendTo(to protocol.Agent, m protocol.Message, request string) {
	for _, p := range c.w.pis() {
		if p.from == to || c.w.plant == sharedTopics {
			p.send(m, request)
		}
	}
	c.w.thief.hear(c.w, m)
}

// activate makes another Pi the active one.
func (c *cloud) activate(p *pi) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = p
	c.table.Activate(p.from)
	c.w.count("activations")
	c.w.note("%s is active", p.from.Username)
}

// proceed performs the step that is due at the age of a request.
func (c *cloud) proceed(process int, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.table.Row(id)
	if !c.runs(process) || r.State.Final() {
		return
	}
	age := c.now().Sub(r.Created)
	limit := protocol.ClaimLimit
	switch {
	case age >= reportLimit:
		c.table.Abandon(id)
		c.look()
		return
	case age >= limit && c.table.Fail(id, branch, model.NoClaim):
		c.look()
		return
	case age >= limit:
		limit = reportLimit
	}
	c.ask(id)
	time.AfterFunc(min(protocol.RepeatInterval, limit-age), func() { c.proceed(process, id) })
}

// sweep ends overdue requests, and repeats the asks of a dead process.
func (c *cloud) sweep(process int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.runs(process) || c.w.ends() {
		return
	}
	for _, r := range c.table.Rows() {
		age := c.now().Sub(r.Created)
		if c.ours[r.ID] != process && !r.State.Final() && age > orphanAge && age < reportLimit {
			c.ask(r.ID)
		}
	}
	c.table.EndOverdue(protocol.ClaimLimit+grace, reportLimit+grace, c.now())
	c.look()
	time.AfterFunc(sweepEvery, func() { c.sweep(process) })
}

// receivePayload decodes and processes a message from an agent, or from a party with its credential.
func (c *cloud) receivePayload(from protocol.Agent, kind protocol.Kind, payload []byte) error {
	switch kind {
	case protocol.KindDoorClaim:
		return hand(payload, func(m protocol.Claim) { c.receive(from, m) })
	case protocol.KindDoorResult:
		return hand(payload, func(m protocol.Result) { c.receive(from, m) })
	}
	return nil
}

func (c *cloud) receive(from protocol.Agent, m protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.runs(c.started) {
		return
	}
	switch m := m.(type) {
	case protocol.Claim:
		c.claim(from, m)
	case protocol.Result:
		c.result(from, m)
	}
	c.look()
}

func (c *cloud) result(from protocol.Agent, m protocol.Result) {
	r := c.table.Row(m.RequestID)
	if c.w.plant == resultsOfStandby || c.w.plant == sharedTopics || c.w.plant == claimsOfStandby && r.Nonce == m.Nonce {
		from = c.active.from
	}
	if c.w.plant == sharedTopics {
		m.Nonce = r.Nonce
	}
	if _, counts := c.table.Report(m.RequestID, from, m.Nonce, m.Device, m.Outcome); !counts {
		c.w.count("results ignored")
	}
}

// now is the clock that measures ages: that of the database. A replica's own may be behind.
func (c *cloud) now() time.Time {
	if c.w.plant == replicaClock {
		return time.Now().Add(-2 * time.Second)
	}
	return time.Now()
}

func (c *cloud) claim(from protocol.Agent, m protocol.Claim) {
	to := from
	if c.w.plant == claimsOfStandby {
		from = c.active.from
	}
	if a := c.awaited[m.RequestID]; a != nil {
		if a.nonce != m.Nonce && from == c.active.from {
			a.nonce, a.from, a.claimed = m.Nonce, from, time.Now()
		}
		return
	}
	r := c.table.Row(m.RequestID)
	if r == nil {
		return
	}
	_, gone := c.revoked[r.Key]
	holds := !gone
	doors := c.table.Grant(m.RequestID, from, m.Nonce, holds, c.now())
	if doors == nil {
		c.w.count("denied")
		c.sendTo(to, protocol.Deny{RequestID: m.RequestID, Nonce: m.Nonce, Reason: "too late, not the first, or cancelled"}, m.RequestID)
		return
	}
	c.grant(to, m.RequestID, m.Nonce, doors)
}

// grant sends a signed grant to the agent that claimed.
func (c *cloud) grant(to protocol.Agent, id, nonce string, doors []string) {
	grant := protocol.Grant{Branch: branch, RequestID: id, Nonce: nonce, Doors: doors,
		PulseMs: uint32(protocol.DefaultPulse.Milliseconds())}.Sign(cloudKey)
	c.sendTo(to, grant, id)
	c.w.net.forgery(c.w, grant)
}

// look records final states, and checks that they do not change.
func (c *cloud) look() {
	for _, r := range c.table.Rows() {
		before, known := c.ended[r.ID]
		switch {
		case known && before != r.State:
			c.w.violation("D4: %s was %s and is %s", r.ID, before, r.State)
		case !known && r.State.Final():
			c.ended[r.ID] = r.State
			c.w.note("%s ends as %s %s", r.ID, r.State, r.Detail)
			if r.State == model.Failed {
				c.failed[r.ID] = time.Now()
			}
		}
	}
}

// forgery sends what an attacker on the network without the signing key may send.
func (n *network) forgery(w *fixture, genuine protocol.Grant) {
	r := n.fate("forgery " + genuine.RequestID)
	if r.Float64() >= n.forge {
		return
	}
	forged := genuine
	switch r.IntN(5) {
	case 0: // other doors
		forged.Doors = []string{"room_1", "front_1", "front_2"}
	case 1: // another request
		forged.RequestID = newID(uint64(r.IntN(1 << 20)))
	case 2: // a bit of the signature
		b := []byte(forged.Signature)
		b[r.IntN(80)] ^= 1
		forged.Signature = string(b)
	case 3: // signed with another key
		forged = forged.Sign(strangerKey)
	case 4: // the grant of another branch
		forged.Branch = "hongdae"
		forged = forged.Sign(cloudKey)
	}
	w.count("forged")
	payload, err := protocol.Encode(forged)
	if err != nil {
		return // not even well-formed
	}
	w.net.toAgent("forged "+genuine.RequestID, func() { w.pi.deliver(protocol.KindDoorGrant, payload) })
}
