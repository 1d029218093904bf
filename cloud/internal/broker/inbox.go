package broker

import (
	"context"
	"hash/maphash"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/protocol"
)

// Doors takes what agents say about doors. The branch is the topic's.
type Doors interface {
	Claim(ctx context.Context, branch string, claim protocol.Claim) error
	Result(ctx context.Context, branch string, result protocol.Result) error
}

// Devices takes everything else that agents say. Calls for one branch come one after another and in order, except for
// the two answers to commands.
type Devices interface {
	Presence(ctx context.Context, branch string, online bool) error
	Status(ctx context.Context, branch string, status protocol.Status) error
	Telemetry(ctx context.Context, branch string, telemetry protocol.Telemetry) error
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
	// handleWithin bounds the work on one message; a claim is worthless after it.
	handleWithin = 5 * time.Second
)

// urgentWorkers is how many messages are handled at once for people who stand at a door. Each waits for the database most
// of the time; more of them would be slower, because the database is not wider.
var urgentWorkers = max(6, 2*runtime.GOMAXPROCS(0))

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
	log     *slog.Logger

	urgent  chan delivery
	steady  [steadyLanes]chan delivery
	seed    maphash.Seed
	dropped atomic.Int64

	mu      sync.Mutex
	waiting map[string]int // messages of a branch that wait
}

func newInbox(doors Doors, devices Devices, log *slog.Logger) *inbox {
	i := &inbox{doors: doors, devices: devices, log: log, urgent: make(chan delivery, urgentQueue), seed: maphash.MakeSeed(),
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
		workers.Go(func() error { i.work(ctx, lane); return nil })
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
			if err := i.handle(ctx, d); err != nil && ctx.Err() == nil {
				i.log.Warn("mqtt: message not handled", "branch", d.branch, "kind", string(d.kind), "error", err)
			}
		}
	}
}

func (i *inbox) handle(ctx context.Context, d delivery) error {
	ctx, cancel := context.WithTimeout(ctx, handleWithin)
	defer cancel()
	switch d.kind {
	case protocol.KindDoorClaim:
		return decoded(ctx, d, i.doors.Claim)
	case protocol.KindDoorResult:
		return decoded(ctx, d, i.doors.Result)
	case protocol.KindStatus:
		return decoded(ctx, d, i.devices.Status)
	case protocol.KindTelemetry:
		return decoded(ctx, d, i.devices.Telemetry)
	case protocol.KindClimateResult:
		return decoded(ctx, d, i.devices.Commanded)
	case protocol.KindSensorsReadings:
		return decoded(ctx, d, i.devices.Measured)
	case kindPresence:
		return i.devices.Presence(ctx, d.branch, d.online)
	}
	return nil // a heartbeat: that it arrived was all it had to say
}

func decoded[M protocol.Message](ctx context.Context, d delivery, handle func(context.Context, string, M) error) error {
	m, err := protocol.Decode[M](d.payload)
	if err != nil {
		return err
	}
	return handle(ctx, d.branch, m)
}
