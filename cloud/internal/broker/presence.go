package broker

import (
	"slices"
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// presence announces to Devices when agents connect and disconnect. It compares states rather than forwarding changes: an
// announcement that did not fit into the inbox is made at the next comparison.
//
// In a pool, the replica whose broker an agent is connected to announces it. The others follow, and announce only when
// that replica is lost, or when their own last announcement of the agent may have come after it. At an external broker, the
// replica that receives the shared copy of an online status announces the agent, and every replica that it is offline.
type presence struct {
	inbox  *inbox
	online func(protocol.Agent) bool

	mu     sync.Mutex
	agents map[protocol.Agent]announced
	missed map[protocol.Agent]struct{} // the agents whose last announcement did not fit into the inbox
	// unstored holds when an announcement is repeated that the database did not take.
	unstored map[protocol.Agent]time.Time
}

// unstoredDelay is the time after which an announcement that the database did not take is repeated.
const unstoredDelay = 10 * time.Second

// announced is the last known state of an agent's presence. An agent without one is offline and was not announced.
type announced uint8

const (
	stateOnline announced = 1 << iota
	byUs                  // this replica has announced the agent
	byUsOnline            // as online
)

func (a announced) online() bool { return a&stateOnline != 0 }

// contradicts reports whether the last announcement of this replica was another one.
func (a announced) contradicts(online bool) bool {
	return a&byUs != 0 && (a&byUsOnline != 0) != online
}

func announcedByUs(online bool) announced {
	if online {
		return stateOnline | byUs | byUsOnline
	}
	return byUs
}

func newPresence(inbox *inbox, online func(protocol.Agent) bool) *presence {
	p := &presence{inbox: inbox, online: online, agents: make(map[protocol.Agent]announced), missed: make(map[protocol.Agent]struct{}),
		unstored: make(map[protocol.Agent]time.Time)}
	inbox.unstored = p.repeatLater
	return p
}

// announce compares the last known state of an agent with its present one, and announces a change. The lock keeps
// announcements in order. It reports whether the last announcement is right now.
func (p *presence) announce(agent protocol.Agent) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	online := p.online(agent)
	if p.agents[agent].online() == online {
		delete(p.missed, agent)
		return true
	}
	return p.put(agent, online)
}

// announceAnyway announces the state of an agent, also if it is the last known one, unless this replica has done so: other
// replicas may have learned it too, and wait for this one to announce it.
func (p *presence) announceAnyway(agent protocol.Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if online := p.online(agent); p.agents[agent] != announcedByUs(online) {
		p.put(agent, online)
	}
}

// follow records a change that another replica announces.
func (p *presence) follow(agent protocol.Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record(agent, p.online(agent))
}

// followOnline records that an agent has connected, which another replica announces, and announces that it has disconnected: no
// later status would repeat that if the other replica stopped.
func (p *presence) followOnline(agent protocol.Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.online(agent) {
		p.record(agent, true)
	} else if p.agents[agent].online() {
		p.put(agent, false)
	}
}

// record records the state of an agent, and announces it if the last announcement of this replica was another one. mu is held.
func (p *presence) record(agent protocol.Agent, online bool) {
	switch state := p.agents[agent]; {
	case state.contradicts(online):
		p.put(agent, online)
	case online:
		p.agents[agent] = state | stateOnline
	case state&^stateOnline == 0:
		delete(p.agents, agent)
	default:
		p.agents[agent] = state &^ stateOnline
	}
}

// put announces the state of an agent. It reports false if the announcement does not fit into the inbox. mu is held.
func (p *presence) put(agent protocol.Agent, online bool) bool {
	if !p.inbox.put(delivery{from: protocol.Peer{Agent: agent}, kind: kindPresence, online: online}) {
		p.missed[agent] = struct{}{}
		return false
	}
	delete(p.missed, agent)
	delete(p.unstored, agent)
	p.agents[agent] = announcedByUs(online)
	return true
}

// repeatLater has an announcement repeated that the database did not take. Otherwise it would not learn that an agent has disconnected.
func (p *presence) repeatLater(agent protocol.Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unstored[agent] = time.Now().Add(unstoredDelay)
}

// announceUnstored announces the present state of agents whose last announcement the database did not take.
func (p *presence) announceUnstored() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for agent, at := range p.unstored {
		if !time.Now().Before(at) {
			p.put(agent, p.online(agent))
		}
	}
}

// announceMissed makes the announcements that did not fit into the inbox.
func (p *presence) announceMissed() {
	p.announceEach(func(announce func(protocol.Agent)) {
		for agent := range p.missed {
			announce(agent)
		}
	})
}

// announceAll compares every agent that is known to be online, and those of announceMissed.
func (p *presence) announceAll() {
	p.announceEach(func(announce func(protocol.Agent)) {
		for agent := range p.missed {
			announce(agent)
		}
		for agent, state := range p.agents {
			if state.online() && !p.online(agent) {
				announce(agent)
			}
		}
	})
}

// announceEach announces the agents that choose yields under the lock, and those of announceUnstored.
func (p *presence) announceEach(choose func(announce func(protocol.Agent))) {
	p.announceUnstored()
	var agents []protocol.Agent
	p.mu.Lock()
	choose(func(agent protocol.Agent) { agents = append(agents, agent) })
	p.mu.Unlock()
	for _, agent := range agents {
		p.announce(agent)
	}
}

// usernames returns the user names of agents, without duplicates.
func usernames(agents []protocol.Agent) []string {
	var names []string
	for _, a := range agents {
		if !slices.Contains(names, a.Username) {
			names = append(names, a.Username)
		}
	}
	return names
}
