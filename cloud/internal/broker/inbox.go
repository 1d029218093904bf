package broker

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Doors takes what agents say about doors. The branch is the topic's.
type Doors interface {
	Claim(ctx context.Context, branch string, claim protocol.Claim) error
	Result(ctx context.Context, branch string, result protocol.Result) error
}

// Devices handles reports of agents. Calls for one branch are sequential and in order.
type Devices interface {
	// Announced handles presence and status messages in batches, in their order.
	Announced(ctx context.Context, announced []device.Announcement) error
	// Telemetry handles sensor readings and door events in batches, in their order.
	Telemetry(ctx context.Context, messages []postgres.Telemetry) error
}

// Climate handles the answers of agents to commands and sensor reads.
type Climate interface {
	Commanded(ctx context.Context, branch string, result protocol.ClimateResult) error
	Measured(ctx context.Context, branch string, readings protocol.SensorsReadings) error
}

const (
	// Some seconds of work each. One branch can fill a quarter, so that an agent gone wild takes only its own branch
	// with it.
	urgentQueue = 4096
	branchQueue = urgentQueue / 4
	// The rest keeps its order by branch.
	steadyLanes = 4
	steadyQueue = 4096
	// steadyBatch is the most messages that are handled together.
	steadyBatch = 256
	// batchInterval is how long those that come next may gather, for the sake of the people at the doors.
	batchInterval = 50 * time.Millisecond
	// handleTimeout bounds the work on one message; a claim is worthless after it.
	handleTimeout = 5 * time.Second
)

// urgentWorkers is how many messages are handled at once for people who stand at a door. Nearly all of them wait for the
// database, which takes those that wait together.
const urgentWorkers = 64

// delivery is a message on its way from the network to a verb.
type delivery struct {
	branch  string
	kind    protocol.Kind
	payload []byte
	online  bool // of kindPresence
}

// kindPresence never travels: the broker tells itself that a branch came or went.
const kindPresence protocol.Kind = "presence"

// inbox takes messages out of the agents' read loops, which must never wait for a database. When a queue is full the
// message is dropped and counted: the queues hold seconds of work, so by then nobody waits for it any more, and every
// message that matters is sent again (asks by the cloud until there is a result, results by the agent when asked again,
// status and telemetry every minute).
type inbox struct {
	doors   Doors
	devices Devices
	climate Climate
	log     *slog.Logger

	urgent  chan delivery
	steady  [steadyLanes]chan delivery
	seed    maphash.Seed
	dropped atomic.Int64

	mu      sync.Mutex
	waiting map[string]int // messages of a branch that wait
}

func newInbox(doors Doors, devices Devices, climate Climate, log *slog.Logger) *inbox {
	i := &inbox{doors: doors, devices: devices, climate: climate, log: log, urgent: make(chan delivery, urgentQueue), seed: maphash.MakeSeed(),
		waiting: make(map[string]int)}
	for n := range i.steady {
		i.steady[n] = make(chan delivery, steadyQueue)
	}
	return i
}

// put never blocks. It reports false when the message was dropped.
func (i *inbox) put(d delivery) bool {
	lane := i.urgent
	switch d.kind {
	case protocol.KindStatus, protocol.KindTelemetry, kindPresence:
		lane = i.steady[maphash.String(i.seed, d.branch)%steadyLanes]
	}
	if i.reserve(d.branch) {
		select {
		case lane <- d:
			return true
		default:
			i.release(d.branch)
		}
	}
	i.dropped.Add(1)
	droppedIn.Inc()
	return false
}

// reserve takes a place in a branch's share of the queues.
func (i *inbox) reserve(branch string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting[branch] >= branchQueue {
		return false
	}
	i.waiting[branch]++
	return true
}

func (i *inbox) release(branch string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting[branch]--; i.waiting[branch] == 0 {
		delete(i.waiting, branch)
	}
}

func (i *inbox) run(ctx context.Context) error {
	var workers errgroup.Group
	for range urgentWorkers {
		workers.Go(func() error { i.work(ctx, i.urgent); return nil })
	}
	for _, lane := range i.steady {
		workers.Go(func() error { i.workInBatches(ctx, lane); return nil })
	}
	return workers.Wait()
}

func (i *inbox) work(ctx context.Context, lane <-chan delivery) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-lane:
			i.release(d.branch)
			i.complain(ctx, d.branch, d.kind, i.handle(ctx, d))
		}
	}
}

// workInBatches hands what waits together to Devices, as far as it can take that.
func (i *inbox) workInBatches(ctx context.Context, lane <-chan delivery) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-lane:
			i.handleSteady(ctx, i.gather(first, lane))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(batchInterval):
		}
	}
}

// gather adds those that wait already.
func (i *inbox) gather(first delivery, lane <-chan delivery) []delivery {
	batch := []delivery{first}
	i.release(first.branch)
	for len(batch) < steadyBatch {
		select {
		case d := <-lane:
			i.release(d.branch)
			batch = append(batch, d)
		default:
			return batch
		}
	}
	return batch
}

// handleSteady keeps the order: what is of one kind goes together, and after what was before it.
func (i *inbox) handleSteady(ctx context.Context, batch []delivery) {
	var (
		news []device.Announcement
		told []postgres.Telemetry
	)
	flush := func() {
		together(ctx, news, i.devices.Announced, func(n device.Announcement, err error) { i.complain(ctx, n.Branch, protocol.KindStatus, err) })
		together(ctx, told, i.devices.Telemetry, func(t postgres.Telemetry, err error) { i.complain(ctx, t.Branch, protocol.KindTelemetry, err) })
		news, told = nil, nil
	}
	for _, d := range batch {
		var err error
		if d.kind == protocol.KindTelemetry != (len(told) > 0) {
			flush()
		}
		switch d.kind {
		case kindPresence:
			news = append(news, device.Announcement{Branch: d.branch, Online: d.online})
		case protocol.KindStatus:
			var status protocol.Status
			if status, err = protocol.Decode[protocol.Status](d.payload); err == nil {
				news = append(news, device.Announcement{Branch: d.branch, Online: status.State == protocol.Online, Status: &status})
			}
		case protocol.KindTelemetry:
			var telemetry protocol.Telemetry
			if telemetry, err = protocol.Decode[protocol.Telemetry](d.payload); err == nil {
				told = append(told, postgres.Telemetry{Branch: d.branch, Telemetry: telemetry})
			}
		}
		i.complain(ctx, d.branch, d.kind, err)
	}
	flush()
}

// together passes messages on. What is refused together goes one by one: one branch must not spoil it for others.
func together[M any](ctx context.Context, messages []M, take func(context.Context, []M) error, complain func(M, error)) {
	if len(messages) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, handleTimeout)
	err := take(limited, messages)
	cancel()
	switch {
	case err == nil:
	case len(messages) == 1 || errors.Is(err, context.DeadlineExceeded):
		complain(messages[0], err)
	default:
		for _, m := range messages {
			together(ctx, []M{m}, take, complain)
		}
	}
}

func (i *inbox) complain(ctx context.Context, branch string, kind protocol.Kind, err error) {
	if err != nil && ctx.Err() == nil {
		i.log.Warn("mqtt: message not handled", "branch", branch, "kind", string(kind), "error", err)
	}
}

func (i *inbox) handle(ctx context.Context, d delivery) error {
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	switch d.kind {
	case protocol.KindDoorClaim:
		return decoded(ctx, d, i.doors.Claim)
	case protocol.KindDoorResult:
		return decoded(ctx, d, i.doors.Result)
	case protocol.KindClimateResult:
		return decoded(ctx, d, i.climate.Commanded)
	case protocol.KindSensorsReadings:
		return decoded(ctx, d, i.climate.Measured)
	}
	return nil // nothing else is put here
}

func decoded[M protocol.Message](ctx context.Context, d delivery, handle func(context.Context, string, M) error) error {
	m, err := protocol.Decode[M](d.payload)
	if err != nil {
		return err
	}
	return handle(ctx, d.branch, m)
}
