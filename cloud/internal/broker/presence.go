package broker

import "sync"

// presence tells Devices when branches come and go. It works by level, not by edge: what could not be said because the
// inbox was full is said when somebody looks again.
type presence struct {
	inbox  *inbox
	online func(branch string) bool

	mu   sync.Mutex
	told map[string]struct{} // the branches that Devices takes for online
}

func newPresence(inbox *inbox, online func(branch string) bool) *presence {
	return &presence{inbox: inbox, online: online, told: make(map[string]struct{})}
}

// announce compares what Devices was told of a branch with what is. The lock keeps two news of a branch in order.
func (p *presence) announce(branch string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	online := p.online(branch)
	if _, told := p.told[branch]; told == online || !p.inbox.put(delivery{branch: branch, kind: kindPresence, online: online}) {
		return
	}
	if online {
		p.told[branch] = struct{}{}
	} else {
		delete(p.told, branch)
	}
}

// announceAll looks again at every branch that Devices takes for online.
func (p *presence) announceAll() {
	p.mu.Lock()
	branches := make([]string, 0, len(p.told))
	for branch := range p.told {
		branches = append(branches, branch)
	}
	p.mu.Unlock()
	for _, branch := range branches {
		p.announce(branch)
	}
}
