package doorsim

import (
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
	"github.com/yeolda/yeolda/protocol/model"
)

// The rhythm of the cloud, as cloud/internal/access has it.
const (
	reportLimit = 6900 * time.Millisecond // the age at which a granted request ends: a little before people give up
	grace       = 100 * time.Millisecond
	sweepEvery  = 500 * time.Millisecond
	orphanAge   = 2 * protocol.RepeatInterval
)

// cloud is the cloud's side: the table, which survives, and a process, which does not.
type cloud struct {
	w *world

	mu      sync.Mutex
	table   model.Table
	started int                      // counts the processes; odd: it runs
	ours    map[string]int           // requests asked for by this process
	ended   map[string]model.State   // as first seen
	revoked map[string]time.Time     // keys, and when they were cancelled
	failed  map[string]time.Time     // when FAILED was decided
	at      map[string]time.Duration // when requests were made, since the start
}

func newCloud(w *world) *cloud {
	return &cloud{w: w, ours: map[string]int{}, ended: map[string]model.State{}, revoked: map[string]time.Time{},
		failed: map[string]time.Time{}, at: map[string]time.Duration{}}
}

// start begins a process, which first looks for what an earlier one left.
func (c *cloud) start() {
	c.mu.Lock()
	c.started++
	c.ours = map[string]int{}
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

// press is somebody's wish to have doors opened. Nobody hears it while the cloud is down.
func (c *cloud) press(id, device string, doors []string, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	process := c.started
	if !c.runs(process) {
		return
	}
	if at, gone := c.revoked[key]; key != "" && gone && !time.Now().Before(at) {
		return // the key opens nothing any more
	}
	c.w.note("%s pressed for %s by %q", id, device, key)
	c.table.Insert(model.Row{ID: id, Branch: branch, Device: device, Doors: doors, Key: key, Created: time.Now(), State: model.Pending})
	c.ours[id] = process
	c.ask(id)
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

func (c *cloud) ask(id string) {
	c.w.toAgent(protocol.Ask{RequestID: id, Doors: c.table.Row(id).Doors}, id)
}

// proceed is what the process that accepted a request does as it ages.
func (c *cloud) proceed(process int, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.table.Row(id)
	if !c.runs(process) || r.State.Final() {
		return
	}
	age := time.Since(r.Created)
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

// sweep ends what nobody else does, and asks for what a dead process asked for.
func (c *cloud) sweep(process int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.runs(process) || c.w.ends() {
		return
	}
	for _, r := range c.table.Rows() {
		age := time.Since(r.Created)
		if c.ours[r.ID] != process && !r.State.Final() && age > orphanAge && age < reportLimit {
			c.ask(r.ID)
		}
	}
	c.table.EndOverdue(protocol.ClaimLimit+grace, reportLimit+grace, time.Now())
	c.look()
	time.AfterFunc(sweepEvery, func() { c.sweep(process) })
}

// receive takes a message of the agent.
func (c *cloud) receive(m protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.runs(c.started) {
		return
	}
	switch m := m.(type) {
	case protocol.Claim:
		c.claim(m)
	case protocol.Result:
		c.table.Report(m.RequestID, branch, m.Device, m.Outcome)
	}
	c.look()
}

func (c *cloud) claim(m protocol.Claim) {
	r := c.table.Row(m.RequestID)
	holds := false
	if r != nil {
		_, gone := c.revoked[r.Key]
		holds = !gone
	}
	doors := c.table.Grant(m.RequestID, branch, m.Nonce, holds, time.Now())
	if doors == nil {
		c.w.count("denied")
		c.w.toAgent(protocol.Deny{RequestID: m.RequestID, Nonce: m.Nonce, Reason: "too late, not the first, or cancelled"}, m.RequestID)
		c.table.Fail(m.RequestID, branch, "claim denied")
		return
	}
	grant := protocol.Grant{Branch: branch, RequestID: m.RequestID, Nonce: m.Nonce, Doors: doors,
		PulseMs: uint32(protocol.DefaultPulse.Milliseconds())}.Sign(cloudKey)
	c.w.toAgent(grant, m.RequestID)
	c.w.net.forgery(c.w, grant)
}

// look notes how requests have ended, and that an end stays as it is.
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

// forgery sends what somebody who reads and writes the network, and does not have the cloud's key, may send.
func (n *network) forgery(w *world, genuine protocol.Grant) {
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
	case 3: // signed by another
		forged = forged.Sign(strangerKey)
	case 4: // a branch's grant at another
		forged.Branch = "hongdae"
		forged = forged.Sign(cloudKey)
	}
	w.count("forged")
	payload, err := protocol.Encode(forged)
	if err != nil {
		return // not even well-formed
	}
	w.net.toAgent("forged "+genuine.RequestID, func() { w.deliver(protocol.KindDoorGrant, payload) })
}
