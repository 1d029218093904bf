package broker

import (
	"slices"
	"sync"

	"github.com/yeolda/yeolda/protocol"
)

// presence announces to Devices when agents connect and disconnect. It compares states rather than forwarding changes: an
// announcement that did not fit into the inbox is made at the next comparison.
type presence struct {
	inbox  *inbox
	online func(protocol.Agent) bool

	mu        sync.Mutex
	announced map[protocol.Agent]struct{} // the agents announced as online
	missed    map[protocol.Agent]struct{} // the agents whose last announcement did not fit into the inbox
}

func newPresence(inbox *inbox, online func(protocol.Agent) bool) *presence {
	return &presence{inbox: inbox, online: online, announced: make(map[protocol.Agent]struct{}), missed: make(map[protocol.Agent]struct{})}
}

// announce compares the last announcement of an agent with its present state. The lock keeps announcements in order. It
// reports whether the last announcement is right now.
func (p *presence) announce(agent protocol.Agent) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	online := p.online(agent)
	d := delivery{from: protocol.Peer{Agent: agent}, kind: kindPresence, online: online}
	if _, announced := p.announced[agent]; announced != online && !p.inbox.put(d) {
		p.missed[agent] = struct{}{}
		return false
	}
	delete(p.missed, agent)
	if online {
		p.announced[agent] = struct{}{}
	} else {
		delete(p.announced, agent)
	}
	return true
}

// announceMissed makes the announcements that did not fit into the inbox.
func (p *presence) announceMissed() {
	p.announceEach(func(announce func(protocol.Agent)) {
		for agent := range p.missed {
			announce(agent)
		}
	})
}

// announceAll compares every agent that was announced as online, and those of announceMissed.
func (p *presence) announceAll() {
	p.announceEach(func(announce func(protocol.Agent)) {
		for agent := range p.missed {
			announce(agent)
		}
		for agent := range p.announced {
			if !p.online(agent) {
				announce(agent)
			}
		}
	})
}

// announceEach announces the agents that choose yields under the lock.
func (p *presence) announceEach(choose func(announce func(protocol.Agent))) {
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
