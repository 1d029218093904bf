package broker

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Doors handles door messages of agents. At an external broker, the user name of an agent that uses the topics of its branch
// is empty.
type Doors interface {
	Claim(ctx context.Context, from protocol.Peer, claim protocol.Claim) error
	Result(ctx context.Context, from protocol.Peer, result protocol.Result) error
}

// Devices handles reports of agents. Calls for one branch are sequential and in order.
type Devices interface {
	// Announced handles presence and status messages in batches, in their order.
	Announced(ctx context.Context, announced []device.Announcement) error
	// Telemetry handles sensor readings and door events in batches, in their order.
	Telemetry(ctx context.Context, messages []postgres.Telemetry) error
	// TakenOver is called when another machine connects with the credential of a connected agent.
	TakenOver(ctx context.Context, agent protocol.Agent) error
	// Rekeyed handles the new secrets of a credential.
	Rekeyed(ctx context.Context, from protocol.Agent, secrets protocol.Rekeyed) error
	// SettingsFile handles settings that were edited on the machine of an agent.
	SettingsFile(ctx context.Context, from protocol.Agent, file protocol.SettingsFile) error
	// DiagnosticsLog handles a part of the log of an agent, and DiagnosticsReport the report of its doctor.
	DiagnosticsLog(ctx context.Context, from protocol.Agent, log protocol.DiagnosticsLog) error
	DiagnosticsReport(ctx context.Context, from protocol.Agent, report protocol.DiagnosticsReport) error
}

// Passes handles the messages of agents with keypads. Calls of Announced, Applied and Entry for one branch are sequential and
// in order.
type Passes interface {
	Beat(ctx context.Context, from protocol.Peer, beat protocol.Heartbeat) error
	// Announced handles presence and status messages after Devices of this replica or of another one has.
	Announced(announced []device.Announcement)
	Applied(ctx context.Context, from protocol.Peer, applied protocol.PassApplied) error
	Entry(ctx context.Context, from protocol.Peer, entry protocol.PassEntry) error
}

// Climate handles the answers of agents to commands and sensor reads.
type Climate interface {
	Commanded(ctx context.Context, from protocol.Agent, result protocol.ClimateResult) error
	Measured(ctx context.Context, from protocol.Agent, readings protocol.SensorsReadings) error
}

const (
	// Each queue holds a few seconds of work. One agent can fill a quarter of it, so that a faulty agent harms only its own
	// branch.
	urgentQueue = 4096
	agentQueue  = urgentQueue / 4
	// Messages that are not urgent keep their order within a branch.
	steadyLanes = 4
	steadyQueue = 4096
	// steadyBatch is the maximum number of messages in a batch.
	steadyBatch = 256
	// batchInterval is the pause after a batch. It leaves the database to the doors and makes the next batch larger.
	batchInterval = 50 * time.Millisecond
	// handleTimeout limits the work on one message; a claim is worthless after it.
	handleTimeout = 5 * time.Second
)

// urgentWorkers is the number of door messages handled at once. Nearly all of them wait for the database, which handles
// concurrent calls in batches.
const urgentWorkers = 64

// delivery is a message on its way from the network to a service.
type delivery struct {
	from    protocol.Peer
	kind    protocol.Kind
	payload []byte
	online  bool // of kindPresence
	// elsewhere: another replica passes this status to Devices.
	elsewhere bool
}

// Kinds of deliveries that the broker creates itself. They never appear on the network.
const (
	kindPresence protocol.Kind = "presence"
	kindTakeover protocol.Kind = "takeover"
)

// inbox queues messages, because the agents' read loops must never wait for a database. If a queue is full, the message is
// dropped and counted: the queues hold seconds of work, so its deadline has passed by the time it would be handled, and
// every message that matters is repeated (asks by the cloud until there is a result, results by the agent when asked again,
// status and telemetry every minute).
type inbox struct {
	doors   Doors
	devices Devices
	climate Climate
	passes  Passes // nil: messages about passes are ignored
	log     *slog.Logger

	urgent  chan delivery
	steady  [steadyLanes]chan delivery
	seed    maphash.Seed
	dropped atomic.Int64
	// unstored is called for an agent whose connection or disconnection the database did not take; see presence. nil: for none.
	unstored func(protocol.Agent)

	mu      sync.Mutex
	waiting map[protocol.Agent]int // queued messages of each agent
}

func newInbox(doors Doors, devices Devices, climate Climate, passes Passes, log *slog.Logger) *inbox {
	i := &inbox{doors: doors, devices: devices, climate: climate, passes: passes, log: log, urgent: make(chan delivery, urgentQueue), seed: maphash.MakeSeed(),
		waiting: make(map[protocol.Agent]int)}
	for n := range i.steady {
		i.steady[n] = make(chan delivery, steadyQueue)
	}
	return i
}

// put never blocks. It reports false if the message was dropped.
func (i *inbox) put(d delivery) bool {
	lane := i.urgent
	switch d.kind {
	case protocol.KindStatus, protocol.KindTelemetry, protocol.KindPassApplied, protocol.KindPassEntry, protocol.KindSettingsFile,
		protocol.KindDiagnosticsLog, protocol.KindDiagnosticsReport, kindPresence, kindTakeover:
		lane = i.steady[maphash.String(i.seed, d.from.Branch)%steadyLanes]
	}
	if i.reserve(d.from.Agent) {
		select {
		case lane <- d:
			return true
		default:
			i.release(d.from.Agent)
		}
	}
	i.dropped.Add(1)
	droppedIn.Inc()
	return false
}

// reserve takes a place in an agent's share of the queues.
func (i *inbox) reserve(agent protocol.Agent) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting[agent] >= agentQueue {
		return false
	}
	i.waiting[agent]++
	return true
}

func (i *inbox) release(agent protocol.Agent) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting[agent]--; i.waiting[agent] == 0 {
		delete(i.waiting, agent)
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
			i.release(d.from.Agent)
			i.logError(ctx, d.from.Agent, d.kind, i.handle(ctx, d))
		}
	}
}

// workInBatches passes all queued messages to Devices at once, up to a maximum.
func (i *inbox) workInBatches(ctx context.Context, lane <-chan delivery) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-lane:
			i.handleSteady(ctx, i.drain(first, lane))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(batchInterval):
		}
	}
}

// drain returns first and the messages already in the lane.
func (i *inbox) drain(first delivery, lane <-chan delivery) []delivery {
	batch := []delivery{first}
	i.release(first.from.Agent)
	for len(batch) < steadyBatch {
		select {
		case d := <-lane:
			i.release(d.from.Agent)
			batch = append(batch, d)
		default:
			return batch
		}
	}
	return batch
}

// handleSteady passes announcements on together, and telemetry. The order of the messages of one branch is kept.
func (i *inbox) handleSteady(ctx context.Context, batch []delivery) {
	var (
		announced, stored []device.Announcement
		telemetry         []postgres.Telemetry
	)
	announce := func(a device.Announcement, elsewhere bool) {
		if announced = append(announced, a); !elsewhere {
			stored = append(stored, a)
		}
	}
	flush := func() {
		inOneBatch(ctx, stored, i.devices.Announced, func(a []device.Announcement, err error) {
			i.logError(ctx, a[0].Agent, protocol.KindStatus, err)
			i.repeat(a, err)
		})
		if i.passes != nil {
			i.passes.Announced(announced)
		}
		inOneBatch(ctx, telemetry, i.devices.Telemetry, func(t []postgres.Telemetry, err error) { i.logError(ctx, t[0].Agent, protocol.KindTelemetry, err) })
		announced, stored, telemetry = nil, nil, nil
	}
	for _, d := range batch {
		var err error
		if d.kind == protocol.KindTelemetry != (len(telemetry) > 0) {
			flush()
		}
		switch d.kind {
		case kindPresence:
			announce(device.Announcement{Agent: d.from.Agent, Online: d.online}, false)
		case protocol.KindStatus:
			var status protocol.Status
			if status, err = protocol.Decode[protocol.Status](d.payload); err == nil {
				announce(device.Announcement{Agent: d.from.Agent, Online: status.State == protocol.Online, Status: &status}, d.elsewhere)
			}
		case protocol.KindTelemetry:
			var m protocol.Telemetry
			if m, err = protocol.Decode[protocol.Telemetry](d.payload); err == nil {
				telemetry = append(telemetry, postgres.Telemetry{Agent: d.from.Agent, Telemetry: m})
			}
		default:
			if slices.ContainsFunc(announced, func(a device.Announcement) bool { return a.Agent.Branch == d.from.Branch }) {
				flush()
			}
			err = i.handle(ctx, d)
		}
		i.logError(ctx, d.from.Agent, d.kind, err)
	}
	flush()
}

// inOneBatch passes messages on together. If the batch is rejected, they are passed on one by one: one agent's message must
// not harm the others'.
func inOneBatch[M any](ctx context.Context, messages []M, handle func(context.Context, []M) error, failed func([]M, error)) {
	if len(messages) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, handleTimeout)
	err := handle(limited, messages)
	cancel()
	switch {
	case err == nil:
	case len(messages) == 1 || errors.Is(err, context.DeadlineExceeded):
		failed(messages, err)
	default:
		for _, m := range messages {
			inOneBatch(ctx, []M{m}, handle, failed)
		}
	}
}

// repeat has announcements repeated if the database is away. An agent repeats its status itself.
func (i *inbox) repeat(announced []device.Announcement, err error) {
	if i.unstored == nil || !postgres.IsUnavailable(err) {
		return
	}
	for _, a := range announced {
		if a.Status == nil {
			i.unstored(a.Agent)
		}
	}
}

func (i *inbox) logError(ctx context.Context, agent protocol.Agent, kind protocol.Kind, err error) {
	if err != nil && ctx.Err() == nil {
		i.log.Warn("mqtt: message not handled", "branch", agent.Branch, "username", agent.Username, "kind", string(kind), "error", err)
	}
}

func (i *inbox) handle(ctx context.Context, d delivery) error {
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	switch d.kind {
	case kindTakeover:
		return i.devices.TakenOver(ctx, d.from.Agent)
	case protocol.KindDoorClaim:
		return decoded(ctx, d.payload, d.from, i.doors.Claim)
	case protocol.KindDoorResult:
		return decoded(ctx, d.payload, d.from, i.doors.Result)
	case protocol.KindRekeyed:
		return decoded(ctx, d.payload, d.from.Agent, i.devices.Rekeyed)
	case protocol.KindSettingsFile:
		return decoded(ctx, d.payload, d.from.Agent, i.devices.SettingsFile)
	case protocol.KindDiagnosticsLog:
		return decoded(ctx, d.payload, d.from.Agent, i.devices.DiagnosticsLog)
	case protocol.KindDiagnosticsReport:
		return decoded(ctx, d.payload, d.from.Agent, i.devices.DiagnosticsReport)
	case protocol.KindClimateResult:
		return decoded(ctx, d.payload, d.from.Agent, i.climate.Commanded)
	case protocol.KindSensorsReadings:
		return decoded(ctx, d.payload, d.from.Agent, i.climate.Measured)
	}
	if i.passes == nil {
		return nil
	}
	switch d.kind {
	case protocol.KindHeartbeat:
		return decoded(ctx, d.payload, d.from, i.passes.Beat)
	case protocol.KindPassApplied:
		return decoded(ctx, d.payload, d.from, i.passes.Applied)
	case protocol.KindPassEntry:
		return decoded(ctx, d.payload, d.from, i.passes.Entry)
	}
	return nil // no other kind is queued here
}

func decoded[M protocol.Message, F any](ctx context.Context, payload []byte, from F, handle func(context.Context, F, M) error) error {
	m, err := protocol.Decode[M](payload)
	if err != nil {
		return err
	}
	return handle(ctx, from, m)
}
