// Package live notifies open consoles of changes.
//
// It reads, a few times a second, a small fingerprint of each watched branch and day from the database, and sends the
// differences to the watchers. Writers do not have to announce changes, so none can be missed, whichever replica makes
// them. A watch begins with the first fingerprint, so a client that fetches what it shows after that misses nothing either.
// Without watchers, nothing is read.
//
//	Watch ──▶ topic (branch, day): read every Interval while it has watchers ──▶ events to each of them
//
// A PostgreSQL notification at every commit would be no faster for a user, and would serialise all commits.
package live

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Interval is how often the fingerprint of a watched branch is read.
const Interval = 400 * time.Millisecond

// buffer is the number of batches a slow watcher may be behind before its channel is closed.
const buffer = 32

// Event is a change.
type Event struct {
	Kind   string `json:"kind"`   // slot, payment, door, agent, sensor; branch for watchers of all branches
	Target string `json:"target"` // a reservation's id, a door's device, the code of a branch; empty for the branch as a whole
}

// Hub shares the reads among watchers of the same branch and day. Watch requires Run to be running.
type Hub struct {
	DB  *postgres.DB
	Log *slog.Logger

	mu     sync.Mutex
	ctx    context.Context
	wait   sync.WaitGroup
	topics map[topicKey]*topic
}

type topicKey struct {
	branch string
	start  time.Time
}

type topic struct {
	day      booking.Interval
	watchers map[chan []Event]struct{}
	ready    chan struct{} // closed after the first read
	ended    <-chan struct{}
	stop     context.CancelFunc
}

// Run serves topics until ctx is done.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	h.ctx, h.topics = ctx, map[topicKey]*topic{}
	h.mu.Unlock()
	<-ctx.Done()
	h.mu.Lock()
	for key, t := range h.topics {
		h.end(key, t)
	}
	h.topics = nil
	h.mu.Unlock()
	h.wait.Wait()
	return ctx.Err()
}

// Watch returns a channel with the changes of a branch on a day, and a function that ends the watch. An empty code watches the
// agents and alerts of all branches. It returns when every change from now on will be reported, or with the error of ctx. The
// channel is closed when the hub stops or the watcher does not keep up.
func (h *Hub) Watch(ctx context.Context, branch string, day booking.Interval) (events <-chan []Event, stop func(), err error) {
	watcher := make(chan []Event, buffer)
	key := topicKey{branch, day.Start.UTC()}
	t := h.join(key, day, watcher)
	if t == nil {
		close(watcher)
		return watcher, func() {}, nil
	}
	stop = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.leave(key, t, watcher)
	}
	select {
	case <-t.ready:
	case <-t.ended:
	case <-ctx.Done():
		stop()
		return nil, nil, ctx.Err()
	}
	return watcher, stop, nil
}

// join adds a watcher to a topic; the first one begins it. It returns nil if the hub is not running.
func (h *Hub) join(key topicKey, day booking.Interval, watcher chan []Event) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics == nil {
		return nil
	}
	t, ok := h.topics[key]
	if !ok {
		ctx, cancel := context.WithCancel(h.ctx)
		t = &topic{day: day, watchers: map[chan []Event]struct{}{}, ready: make(chan struct{}), ended: ctx.Done(), stop: cancel}
		h.topics[key] = t
		if key.branch == "" {
			h.wait.Go(func() { h.followAll(ctx, key, t) })
		} else {
			h.wait.Go(func() { h.follow(ctx, key, t) })
		}
	}
	t.watchers[watcher] = struct{}{}
	return t
}

// leave takes a watcher away; the last one ends the topic. The caller holds the lock.
func (h *Hub) leave(key topicKey, t *topic, watcher chan []Event) {
	if _, ok := t.watchers[watcher]; !ok {
		return
	}
	delete(t.watchers, watcher)
	close(watcher)
	if len(t.watchers) == 0 {
		t.stop()
		delete(h.topics, key)
	}
}

func (h *Hub) end(key topicKey, t *topic) {
	for watcher := range t.watchers {
		h.leave(key, t, watcher)
	}
}

// follow polls the database. It does not report a failed query to the watchers: they would poll the same database.
func (h *Hub) follow(ctx context.Context, key topicKey, t *topic) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	var last postgres.LiveState
	known, failing := false, false
	for {
		next, err := postgres.Live(ctx, h.DB.Pool, key.branch, t.day, h.DB.Now())
		switch {
		case err != nil && ctx.Err() == nil && !failing:
			failing = true
			h.Log.WarnContext(ctx, "consoles receive no changes", "branch", key.branch, "error", err)
		case err == nil:
			if known {
				h.tell(key, t, Difference(last, next))
			} else {
				close(t.ready)
			}
			last, known, failing = next, true, false
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (h *Hub) tell(key topicKey, t *topic, events []Event) {
	if len(events) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for watcher := range t.watchers {
		select {
		case watcher <- events:
		default:
			h.leave(key, t, watcher)
		}
	}
}

// Difference holds the changes between two looks.
func Difference(before, after postgres.LiveState) []Event {
	var events []Event
	add := func(kind, target string) { events = append(events, Event{kind, target}) }
	for id, was := range before.Reservations {
		is, ok := after.Reservations[id]
		if ok && is == was {
			continue
		}
		add("slot", wireID(id))
		if was.State != is.State && was.State != booking.Hold {
			add("payment", wireID(id)) // money came, went or is on its way
		}
	}
	for id := range after.Reservations {
		if _, ok := before.Reservations[id]; !ok {
			add("slot", wireID(id))
		}
	}
	if after.Ledger > before.Ledger || after.Refunds != before.Refunds {
		add("payment", "") // of whichever day
	}
	if after.Revision != before.Revision {
		add("slot", "")
	}
	if after.Doors.After(before.Doors) {
		add("door", after.Door)
	}
	if after.Agent != before.Agent || after.Settings != before.Settings {
		add("agent", "")
	}
	if after.Sensors.After(before.Sensors) {
		add("sensor", "")
	}
	return events
}

func wireID(id booking.ReservationID) string { return strconv.FormatInt(int64(id), 10) }

// AllInterval is how often the agents and alerts of all branches are read.
const AllInterval = time.Second

// followAll reads the fingerprints of all branches and sends the codes of those that differ.
func (h *Hub) followAll(ctx context.Context, key topicKey, t *topic) {
	ticker := time.NewTicker(AllInterval)
	defer ticker.Stop()
	var last map[string]string
	failing := false
	for {
		next, err := postgres.LiveOverview(ctx, h.DB.Pool, nil)
		switch {
		case err != nil && ctx.Err() == nil && !failing:
			failing = true
			h.Log.WarnContext(ctx, "consoles receive no changes of branches", "error", err)
		case err == nil:
			if last != nil {
				h.tell(key, t, changedBranches(last, next))
			} else {
				close(t.ready)
			}
			last, failing = next, false
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// changedBranches returns an event for each branch whose fingerprint differs. The empty code stands for alerts of all branches.
func changedBranches(before, after map[string]string) (events []Event) {
	for code, state := range after {
		if before[code] != state {
			events = append(events, Event{"branch", code})
		}
	}
	for code := range before {
		if _, ok := after[code]; !ok {
			events = append(events, Event{"branch", code})
		}
	}
	return events
}
