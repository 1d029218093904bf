package broker

import (
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// line identifies a connection of an agent across messages: which start of the agent, and which connection since.
type connID struct {
	bootID     string
	connection uint32
}

// branches knows from messages alone which branches have an agent: those heard within protocol.OfflineTimeout whose will
// has not come. A will can overtake the next connection's status, so it counts for its own line only.
type branches struct {
	now   func() time.Time
	start time.Time

	mu     sync.RWMutex
	byCode map[string]branchPresence
}

type branchPresence struct {
	connID
	heard time.Duration // since start, monotonic
	gone  bool
}

func newBranches(now func() time.Time) *branches {
	return &branches{now: now, start: now(), byCode: make(map[string]branchPresence)}
}

// hear notes a status or heartbeat.
func (b *branches) hear(branch string, from connID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byCode[branch] = branchPresence{connID: from, heard: b.now().Sub(b.start)}
}

// lose notes a will or a goodbye.
func (b *branches) lose(branch string, from connID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, ok := b.byCode[branch]; ok && last.connID == from {
		last.gone = true
		b.byCode[branch] = last
	}
}

func (b *branches) online(branch string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	last, ok := b.byCode[branch]
	return ok && b.present(last)
}

func (b *branches) present(last branchPresence) bool {
	return !last.gone && b.now().Sub(b.start)-last.heard < protocol.OfflineTimeout
}

func (b *branches) count() (n int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, last := range b.byCode {
		if b.present(last) {
			n++
		}
	}
	return n
}
