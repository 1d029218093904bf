package branch

import (
	"crypto/ed25519"
	"sync"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// book knows which grants an agent will act upon, from what went over the line:
// those that are genuine and answer a claim of the agent's that is young enough.
// It gives each actuation its request without a word from the agent, so that a
// relay that moves for no request shows as just that.
type book struct {
	branch string
	keys   []ed25519.PublicKey

	mu     sync.Mutex
	claims map[protocol.Claim]*claim
}

type claim struct {
	at   time.Time // when the agent first made it
	used bool
}

func newBook(branch string, keys []ed25519.PublicKey) *book {
	return &book{branch: branch, keys: keys, claims: make(map[protocol.Claim]*claim)}
}

// forget drops all claims: nonces live in the agent's memory only.
func (k *book) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.claims)
}

// claimed notes a claim. Repeated, it is no younger and no less used.
func (k *book) claimed(c protocol.Claim) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for c, earlier := range k.claims {
		if now.Sub(earlier.at) > protocol.ResultLife {
			delete(k.claims, c)
		}
	}
	if k.claims[c] == nil {
		k.claims[c] = &claim{at: now}
	}
}

// granted reports whether the agent will act upon a grant. It does so once for
// each.
func (k *book) granted(g protocol.Grant) bool {
	if g.Branch != k.branch || g.Verify(k.keys...) != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.claims[protocol.Claim{RequestID: g.RequestID, Nonce: g.Nonce}]
	if c == nil || c.used || time.Since(c.at) > protocol.GrantAge {
		return false
	}
	c.used = true
	return true
}
