package broker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// connID identifies a connection of an agent across messages: the start of the agent, and the connection since then.
type connID struct {
	bootID     string
	connection uint32
}

// branches derives from messages which agents are connected: those that sent a status or heartbeat within
// protocol.OfflineTimeout and whose will has not arrived. A will can arrive after the next connection's status, so it
// counts for its own connection only. The connections of an agent to all brokers are counted together.
type branches struct {
	now   func() time.Time
	start time.Time

	mu     sync.RWMutex
	byCode map[string]*branch
}

type branch struct {
	agents map[protocol.Agent]*agentPresence
	lost   connID // of the last will
}

type agentPresence struct {
	connID
	via     *source
	heard   time.Duration // since start, monotonic
	lost    bool
	earlier string // the previous boot id
}

// source is one connection to a peer, which reports only changes: until the connection is lost, its agents are not silent.
type source struct{ lost atomic.Int64 } // since start of branches; 0: it is not lost

func newBranches(now func() time.Time) *branches {
	return &branches{now: now, start: now(), byCode: make(map[string]*branch)}
}

// hear records a status or heartbeat. It reports whether two machines are using the credential: the boot id is the one
// before the last again. via is the peer that has sent it; nil: the agent must repeat it.
func (b *branches) hear(agent protocol.Agent, from connID, via *source) (takenOver bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.byCode[agent.Branch]
	if of == nil {
		of = &branch{agents: make(map[protocol.Agent]*agentPresence)}
		b.byCode[agent.Branch] = of
	}
	last := of.agents[agent]
	if last == nil {
		last = &agentPresence{connID: from}
		of.agents[agent] = last
	}
	if last.bootID == from.bootID && last.connection > from.connection {
		return false // late, through the broker that the agent has left
	}
	if last.bootID != from.bootID {
		takenOver = from.bootID == last.earlier
		last.earlier = last.bootID
	}
	last.connID, last.via, last.heard, last.lost = from, via, b.now().Sub(b.start), from == of.lost
	return takenOver
}

// outdated reports whether a retained status is older than what is known of its agent: a broker keeps the status of an agent
// that has moved to another broker.
func (b *branches) outdated(agent protocol.Agent, from connID) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	of := b.byCode[agent.Branch]
	if of == nil || of.agents[agent] == nil {
		return false
	}
	last := of.agents[agent]
	return last.bootID != from.bootID || last.connection > from.connection
}

// lose records a will or an offline status. It may have come on the topic of the branch, so it concerns the agent whose
// connection it names.
func (b *branches) lose(code string, from connID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.byCode[code]
	if of == nil {
		return
	}
	of.lost = from
	for _, last := range of.agents {
		if last.connID == from {
			last.lost = true
		}
	}
}

// online returns the connected agents of a branch.
func (b *branches) online(code string) []protocol.Agent {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var agents []protocol.Agent
	if of := b.byCode[code]; of != nil {
		for agent, last := range of.agents {
			if b.present(last) {
				agents = append(agents, agent)
			}
		}
	}
	return agents
}

// all returns every agent of a branch that was ever heard.
func (b *branches) all(code string) []protocol.Agent {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var agents []protocol.Agent
	if of := b.byCode[code]; of != nil {
		for agent := range of.agents {
			agents = append(agents, agent)
		}
	}
	return agents
}

func (b *branches) present(last *agentPresence) bool {
	heard := last.heard
	if last.via != nil {
		lost := time.Duration(last.via.lost.Load())
		if lost == 0 {
			return !last.lost
		}
		heard = max(heard, lost)
	}
	return !last.lost && b.now().Sub(b.start)-heard < protocol.OfflineTimeout
}

// lostSource records that the connection to a peer has ended. Its agents have the time of OfflineTimeout to connect elsewhere.
func (b *branches) lostSource(s *source) {
	s.lost.CompareAndSwap(0, int64(max(1, b.now().Sub(b.start))))
}

// count returns the number of connected agents.
func (b *branches) count() (n int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, of := range b.byCode {
		for _, last := range of.agents {
			if b.present(last) {
				n++
			}
		}
	}
	return n
}
