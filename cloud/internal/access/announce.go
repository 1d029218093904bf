package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
	"github.com/yeolda/yeolda/protocol"
)

const (
	// announceTTL is how long an announced press is awaited.
	announceTTL = 2 * time.Second
	// claimTTL is how long a claim is kept for a press. The rest of the claim's life is for the grant: if the first one is lost,
	// there is time to repeat it.
	claimTTL = protocol.GrantAge / 2
	// maxAnnounced bounds the presses that are awaited at the same time. Further ones are not announced to their agents.
	maxAnnounced = 4096
	// notPressed is the reason of the deny with which the agent discards a claim.
	notPressed = "announced and not pressed"
)

// announcesByKey limits the announcements of one key for one kind of door, as pressesByKey its presses.
var announcesByKey = limit.Rate{Name: "announce", Burst: pressesByKey.Burst, Interval: pressesByKey.Interval}

// Announce asks the agent for a claim ahead of a press, so that the press needs one round trip to the branch instead of two. It
// writes nothing, grants nothing and discloses nothing: with a key that opens nothing it returns nil, too. If the
// announcement or its claim is lost, or if the press comes to another replica, the press takes two round trips. It returns
// ErrUnknownDoor or a [limit.ExceededError].
func (s *Service) Announce(ctx context.Context, branch, kind, doorlockKey string) error {
	if kind != Front && kind != Room {
		return ErrUnknownDoor
	}
	if err := s.announced.rate.Take(s.Limits, announcesByKey, pressSubject(kind, doorlockKey), time.Now()); err != nil {
		return err
	}
	_, hash, err := parseKey(doorlockKey)
	if err != nil || !protocol.ValidBranch(branch) {
		announcedTotal.WithLabelValues("refused").Inc()
		return nil //nolint:nilerr // the answer to an announcement must not depend on the key
	}
	a := &announcement{id: tracing.RequestID(ctx), press: pressKey{branch, kind, string(hash)}, asked: time.Now()}
	if !s.announced.expect(a) {
		announcedTotal.WithLabelValues("ignored").Inc()
		return nil
	}
	found, err := s.announces.Do(ctx, postgres.KeyedAsk{ID: a.id, Branch: branch, Kind: kind, KeyHash: hash,
		Online: s.Link.Online(branch), Now: s.now()}, s.judge)
	if err != nil || found.Devices == nil {
		s.announced.forget(a)
		if err != nil {
			return fmt.Errorf("access: announced press at %s: %w", branch, err)
		}
		announcedTotal.WithLabelValues("refused").Inc()
		return nil
	}
	announcedTotal.WithLabelValues("asked").Inc()
	to := peer(branch, found.Agent)
	s.announced.await(a, to.Agent, func() { s.expire(a) })
	if err := s.Link.Send(to, protocol.Ask{RequestID: a.id.String(), Doors: found.Devices}); err != nil {
		s.Log.Error("access: ask not sent", "branch", branch, "request", a.id, "error", err)
	}
	return nil
}

func (s *Service) judge(ctx context.Context, asks []postgres.KeyedAsk) ([]postgres.AnnouncedDoor, error) {
	return postgres.AnnouncedDoors(ctx, s.DB.Doors, asks)
}

// expire gives up waiting for an announced press.
func (s *Service) expire(a *announcement) {
	if s.announced.forget(a) {
		s.discard(a)
	}
}

// discard makes the agent drop the claim of an announcement, if there is one. Without that, the agent would keep it for a
// minute.
func (s *Service) discard(a *announcement) {
	if a.nonce == "" {
		return
	}
	announcedTotal.WithLabelValues("unused").Inc()
	err := s.Link.Send(a.from, protocol.Deny{RequestID: a.id.String(), Nonce: a.nonce, Reason: notPressed})
	if err != nil {
		s.Log.Debug("access: claim not discarded", "branch", a.press.branch, "request", a.id, "error", err)
	}
}

// pressKey identifies the press that an announcement is for.
type pressKey struct{ branch, kind, keyHash string }

// announcement is an announced press. Its id becomes that of the request.
type announcement struct {
	id    uuid.UUID
	press pressKey
	asked time.Time // monotonic, as claimed
	agent *protocol.Agent
	timer *time.Timer

	nonce   string // of the agent's claim; empty: none yet
	from    protocol.Peer
	claimed time.Time
	taken   bool // by the press, whose request is being written
}

// announcements are the announced presses of this replica. All of it may be lost at any moment.
type announcements struct {
	rate limit.Buckets

	mu      sync.Mutex
	byID    map[uuid.UUID]*announcement
	byPress map[pressKey]*announcement
	stopped bool
}

// expect adds an announcement, in place of an earlier one for the same press. It reports false for a repetition and at the
// bound.
func (as *announcements) expect(a *announcement) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.byID == nil {
		as.byID, as.byPress = make(map[uuid.UUID]*announcement), make(map[pressKey]*announcement)
	}
	earlier := as.byPress[a.press]
	if earlier != nil && a.asked.Sub(earlier.asked) < protocol.RepeatInterval || as.byID[a.id] != nil || len(as.byID) >= maxAnnounced || as.stopped {
		return false
	}
	as.byID[a.id], as.byPress[a.press] = a, a
	return true
}

// await lets an announcement accept the claim of an agent, until its time has passed.
func (as *announcements) await(a *announcement, agent protocol.Agent, expire func()) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if !as.stopped {
		a.agent, a.timer = &agent, time.AfterFunc(announceTTL, expire)
	}
}

// claim keeps the claim for an announced press. It reports false if the claim is for no announcement, and must be answered.
func (as *announcements) claim(id uuid.UUID, from protocol.Peer, nonce string, at time.Time) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byID[id]
	if a == nil || a.agent == nil || *a.agent != from.Agent {
		return false
	}
	// A repeated claim while the request is being written is ignored: the grant is about to answer it.
	if !a.taken && a.nonce != nonce {
		a.nonce, a.from, a.claimed = nonce, from, at
	}
	return true
}

// take returns the announcement of a press, at most once, if a fresh claim has arrived for it; otherwise nil. The caller
// calls forget when the request is written.
func (as *announcements) take(press pressKey, now time.Time) *announcement {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byPress[press]
	if a == nil || a.nonce == "" || now.Sub(a.claimed) > claimTTL {
		return nil
	}
	a.taken = true
	a.timer.Stop()
	delete(as.byPress, press)
	return a
}

// forget removes an announcement, and reports whether no press has taken it.
func (as *announcements) forget(a *announcement) (unused bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.byID[a.id] == a {
		delete(as.byID, a.id)
	}
	if as.byPress[a.press] == a {
		delete(as.byPress, a.press)
	}
	return !a.taken
}

// stop leaves announced presses to the two round trips.
func (as *announcements) stop() {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.stopped = true
	for id, a := range as.byID {
		if a.timer != nil {
			a.timer.Stop()
		}
		delete(as.byID, id)
	}
	clear(as.byPress)
}
