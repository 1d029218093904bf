package pass

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

const (
	// coalesceInterval is how long changes of passes wait for each other before a list is sent.
	coalesceInterval = 200 * time.Millisecond
	// renewInterval is how often an agent receives its list although nothing has changed: it renews the lease.
	renewInterval = 15 * time.Minute
	// A list that is not acknowledged is sent again after repeatFirst, then at growing intervals up to repeatLast.
	repeatFirst = 2 * time.Second
	repeatLast  = 16 * time.Second
	// upkeepInterval is how often missing passes are created and old rows deleted.
	upkeepInterval = time.Minute
	passTTL        = 30 * 24 * time.Hour
	entryTTL       = 365 * 24 * time.Hour
	// sendersAtOnce bounds the lists that are hashed concurrently.
	sendersAtOnce = 2
	stepTimeout   = 10 * time.Second
)

// Link sends messages to agents.
type Link interface {
	Send(to protocol.Peer, m protocol.Message) error
}

// Service sends pass lists and takes in journals. Its exported fields are set before Run; Now is optional.
type Service struct {
	DB        *postgres.DB
	Link      Link
	Keys      *seal.Keyring
	GrantKeys *grantkey.Ring // sign lists and beacons
	Log       *slog.Logger
	Now       func() time.Time

	timetable timetable
	hashes    verifiers
}

func (s *Service) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Run sends lists that are due and keeps passes complete until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick, upkeep := time.NewTicker(coalesceInterval), time.NewTicker(upkeepInterval)
	defer tick.Stop()
	defer upkeep.Stop()
	var senders errgroup.Group
	senders.SetLimit(sendersAtOnce)
	var changes changes
	s.complete(ctx)
	for {
		select {
		case <-ctx.Done():
			return senders.Wait()
		case <-upkeep.C:
			now := s.now()
			s.complete(ctx)
			s.logError(ctx, "pass: old rows not deleted", postgres.PrunePasses(ctx, s.DB.Pool, now.Add(-passTTL), now.Add(-entryTTL), now))
			s.timetable.touchAll() // doors and keypads of a branch may have changed
			continue
		case <-tick.C:
		}
		for _, b := range s.timetable.announcedBeats() {
			s.logError(ctx, "pass: beacon not sent", s.Beat(ctx, b.from, b.Heartbeat))
		}
		branches, err := changes.branches(ctx, s.DB.Pool, time.Now())
		s.logError(ctx, "pass: changes not read", err)
		for _, branch := range branches {
			s.timetable.touch(branch)
		}
		for _, agent := range s.timetable.take(time.Now()) {
			senders.Go(func() error { s.send(ctx, agent); return nil })
		}
	}
}

// complete creates missing passes.
func (s *Service) complete(ctx context.Context) {
	now := s.now()
	branches, err := postgres.BranchesWithoutPass(ctx, s.DB.Pool, now.Add(postgres.ListDepth), now)
	s.logError(ctx, "pass: reservations without a pass not found", err)
	for _, branch := range branches {
		err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
			return postgres.IssueMissing(ctx, tx, s.Keys, branch, now.Add(postgres.ListDepth), now)
		})
		s.logError(ctx, "pass: missing passes not created", err)
	}
}

func (s *Service) logError(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.Log.Error(what, "error", err)
	}
}

// Announced makes the list of each agent due that has connected, whose list is not the last one that it acknowledged, or
// that is no longer known to have it. Agents without keypads have no lists.
func (s *Service) Announced(announced []device.Announcement) {
	for _, a := range announced {
		switch status := a.Status; {
		case a.Agent.Username == "":
		case status == nil && !a.Online:
			s.timetable.forget(a.Agent)
		case status != nil && a.Online && status.Inventory != nil:
			s.timetable.connect(a.Agent, *status)
		}
	}
}

// Beat answers a heartbeat that asks for the time. The first one of a connection may overtake the agent's announcement, which
// names the keys that the agent trusts; it is answered afterwards, so that a keypad need not wait for the next heartbeat.
func (s *Service) Beat(ctx context.Context, from protocol.Peer, beat protocol.Heartbeat) error {
	if beat.Nonce == "" {
		return nil
	}
	epoch, known := s.timetable.keyEpoch(from, beat)
	if !known {
		return nil
	}
	key, err := s.GrantKeys.Signing(ctx, epoch)
	if err != nil {
		return fmt.Errorf("pass: beacon: %w", err)
	}
	beacon := protocol.Beacon{Branch: from.Branch, BootID: beat.BootID, Nonce: beat.Nonce, Time: s.now().UTC().Truncate(time.Millisecond)}
	return s.Link.Send(from, beacon.Sign(key, from.Username))
}

// timetable is when each connected agent with keypads gets its list.
type timetable struct {
	mu     sync.Mutex
	agents map[protocol.Agent]*lease
	epochs map[protocol.Agent]uint64    // of the grant keys that each connected agent trusts
	beats  map[protocol.Agent]heartbeat // the latest of each agent that has not announced itself yet
}

type heartbeat struct {
	protocol.Heartbeat
	from protocol.Peer
}

// lease is the list of one agent.
type lease struct {
	connection connection
	sealKey    string
	keyEpoch   uint64
	due        time.Time
	repeat     time.Duration // the interval after the next list without an acknowledgement
	busy       bool          // it is being sent
	again      bool          // it became due while it was being sent
	version    uint64        // that was sent last over this connection
	sentAt     time.Time     // zero: none
}

// connection identifies a connection of an agent.
type connection struct {
	bootID string
	number uint32
}

func (t *timetable) connect(agent protocol.Agent, status protocol.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.agents == nil {
		t.agents, t.epochs = make(map[protocol.Agent]*lease), make(map[protocol.Agent]uint64)
	}
	if t.epochs[agent] = status.KeyEpoch; len(status.Inventory.Keypads) == 0 {
		return
	}
	of := t.agents[agent]
	if of == nil {
		of = new(lease)
		t.agents[agent] = of
	}
	if now := (connection{status.BootID, status.Connection}); of.connection != now || of.sealKey != status.SealKey || of.keyEpoch != status.KeyEpoch {
		of.connection, of.sealKey, of.keyEpoch, of.sentAt = now, status.SealKey, status.KeyEpoch, time.Time{}
		of.make(time.Now())
	}
}

func (t *timetable) forget(agent protocol.Agent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.agents, agent)
	delete(t.epochs, agent)
	delete(t.beats, agent)
}

// keyEpoch returns the epoch of the grant keys that an agent trusts. It keeps the heartbeat of an agent that has not announced
// itself yet.
func (t *timetable) keyEpoch(from protocol.Peer, beat protocol.Heartbeat) (epoch uint64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch, known = t.epochs[from.Agent]; !known {
		if t.beats == nil {
			t.beats = make(map[protocol.Agent]heartbeat)
		}
		t.beats[from.Agent] = heartbeat{beat, from}
	}
	return epoch, known
}

// announcedBeats removes and returns the kept heartbeats of agents that have announced themselves since.
func (t *timetable) announcedBeats() (announced []heartbeat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for agent, beat := range t.beats {
		if _, known := t.epochs[agent]; known {
			announced = append(announced, beat)
			delete(t.beats, agent)
		}
	}
	return announced
}

// touch makes the lists of a branch due.
func (t *timetable) touch(branch string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for agent, of := range t.agents {
		if agent.Branch == branch {
			of.make(time.Now())
		}
	}
}

// make makes a list due at once.
func (l *lease) make(now time.Time) {
	l.due, l.repeat, l.again = now, repeatFirst, l.busy
}

// take returns the agents whose lists are due. Each stays busy until done.
func (t *timetable) take(now time.Time) (due []protocol.Agent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for agent, of := range t.agents {
		if !of.busy && !of.due.After(now) {
			of.busy = true
			due = append(due, agent)
		}
	}
	return due
}

// touchAll makes all lists due; those that have not changed are not sent.
func (t *timetable) touchAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.agents {
		of.make(time.Now())
	}
}

// sent reports whether the agent has received this version over its present connection, and need not renew its lease yet.
func (t *timetable) sent(agent protocol.Agent, version uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.agents[agent]
	return of != nil && of.version == version && !of.sentAt.IsZero() && time.Since(of.sentAt) < renewInterval
}

// sealKeyOf returns the key that an agent announced.
func (t *timetable) sealKeyOf(agent protocol.Agent) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.agents[agent]; of != nil {
		return of.sealKey
	}
	return ""
}

// noteSent records that a version is on its way.
func (t *timetable) noteSent(agent protocol.Agent, version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.agents[agent]; of != nil {
		of.version, of.sentAt = version, time.Now()
	}
}

// done ends the sending of a list. It is due again when its lease must be renewed, or soon if it was not acknowledged.
func (t *timetable) done(agent protocol.Agent, applied bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.agents[agent]
	if of == nil {
		return
	}
	of.busy = false
	switch {
	case of.again:
		of.again = false
	case applied && of.sentAt.IsZero(): // a standby agent, which has no list
		of.due, of.repeat = time.Now().Add(renewInterval), repeatFirst
	case applied:
		of.due, of.repeat = of.sentAt.Add(renewInterval), repeatFirst
	default:
		of.due = time.Now().Add(of.repeat)
		of.repeat = min(2*of.repeat, repeatLast)
	}
}

// acknowledged postpones the next list of an agent, unless it is due because of a change, or the agent has acknowledged an earlier version than
// the one that was sent last, which may be lost.
func (t *timetable) acknowledged(agent protocol.Agent, version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.agents[agent]; of != nil && !of.busy && version >= of.version && of.due.After(time.Now()) {
		of.due, of.repeat = time.Now().Add(renewInterval), repeatFirst
	}
}
