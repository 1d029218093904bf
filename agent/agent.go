// Package agent runs in a branch: it receives commands from the cloud over MQTT and executes them on the branch's Board.
// Package protocol defines the messages.
//
//	cloud ◄──MQTT──► internal/link ──► internal/door ────► relays, sense lines
//	                      ▲     │          ▲
//	     results, events, │     │          └─ internal/pass ◄── keypads
//	     readings ────────┘     └────► internal/climate ──► infrared, sensors
package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/agent/internal/climate"
	"github.com/yeolda/yeolda/agent/internal/condition"
	"github.com/yeolda/yeolda/agent/internal/door"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

const (
	eventTTL      = 10 * time.Minute // lifetime of door events in the outbox: staff need the events of a connection outage
	aliveInterval = 2 * time.Second
	stopInterval  = 100 * time.Millisecond // between looks at the doors while the agent stops
)

// Run runs the agent. It first de-energises every lock, then serves the cloud until ctx is done and no door is in use (see
// Config.StopDelay), de-energises every lock again and disconnects. It returns an error if the config or the board is invalid, or if a
// relay line that worked has failed for ten seconds: a restarted agent requests it afresh. It returns ErrSettings when it is to be
// started again with other settings. All other failures are reported to the cloud, and the agent keeps running.
func Run(ctx context.Context, config Config, board Board) error {
	brokers, err := config.validate()
	if err != nil {
		return err
	}
	if err := board.validate(); err != nil {
		return err
	}
	config = config.withDefaults()
	config.keepLog()
	log := config.Logger.With("branch", config.Branch)
	a := &agent{ctx: ctx, config: config, log: log, bootID: rand.Text(), wake: make(chan struct{}, 1), writes: make(chan func(), maxWrites), keys: keyring{file: config.KeyFile, username: config.Username, keys: config.GrantKeys}}
	a.messages.Log, a.messages.Name = log, "decoding messages"
	a.rekeying.Log, a.rekeying.Name = log, "replacing the secrets"
	if err := a.keys.load(); err != nil {
		log.Error("the stored key list is not used, but the keys of the credential", "error", err)
	}
	a.brokers = brokerList{file: config.BrokerFile, username: config.Username, own: brokers}
	listed, err := a.brokers.load()
	if err != nil {
		log.Error("the stored list of brokers is not used, only the brokers of the settings", "error", err)
	}
	a.secrets = newSecrets(config)
	if err := a.secrets.load(); err != nil {
		log.Error("the stored secrets are not used, but those of the credential", "error", err)
	}
	a.epoch.Store(a.keys.epoch)
	a.events.send = a.report
	a.link = link.New(link.Config{
		Branch: config.Branch, Brokers: listed, Last: brokers, ClientID: config.ClientID, Username: config.Username,
		Secrets: a.secrets.list, Accepted: func(s link.Secret) { a.write(func() { a.secretAccepted(s) }) },
		TLS: config.TLS, HandshakeFailed: config.HandshakeFailed, Dial: config.Dial, AddressFile: config.AddressFile, Receive: a.receive, Logger: log,
	})
	a.doors = door.NewController(door.Config{
		Branch: config.Branch, Keys: a.keys.keys, Event: a.event, Logger: log,
		Send: func(m protocol.Message, life time.Duration) { a.link.Send(m, nil, life) },
	}, board.locks())
	keys := a.keys.keys
	a.trusted.Store(&keys)
	if len(board.Keypads) > 0 && config.PassDir != "" {
		a.passes = newPasses(a, board)
	}
	if a.config.Doctor == nil {
		a.config.Doctor = func(context.Context) string { return listTests(a.selfTests()) }
	}
	a.diagnostics = newDiagnostics(a)
	a.climate = climate.New(ctx, config.Branch, board.units(), board.sensors(), log)

	a.doors.Relock()
	info := link.AgentInfo{
		BootID: a.bootID, Version: config.Version, StartedAt: config.Now(), Began: time.Now(),
		Inventory: board.inventory(), Current: a.current,
	}
	if a.passes != nil {
		info.Nonce = a.passes.clock.Heartbeat
	} else {
		info.Inventory.Keypads = nil
	}
	return a.run(ctx, info)
}

type agent struct {
	ctx     context.Context // of Run
	config  Config
	log     *slog.Logger
	link    *link.Link
	doors   *door.Controller
	climate *climate.Climate
	passes  *passes // nil: no keypad is read
	bootID  string

	diagnostics *diagnostics

	keys     keyring
	brokers  brokerList
	secrets  *secrets
	trusted  atomic.Pointer[[]ed25519.PublicKey] // of keys
	messages condition.Condition                 // whether the cloud's messages can be decoded
	rekeying condition.Condition                 // whether new secrets can be stored
	epoch    atomic.Uint64                       // of keys
	events   eventBuffer
	settings settingsState
	wake     chan struct{} // has superviseSettings look at once
	writes   chan func()   // see write
}

func (a *agent) run(ctx context.Context, info link.AgentInfo) error {
	// The connection to the cloud stays up until the doors have reported their final events.
	online, disconnect := context.WithCancel(context.WithoutCancel(ctx))
	defer disconnect()
	serving, closed := context.WithCancel(context.WithoutCancel(ctx))
	defer closed()
	g, ctx := errgroup.WithContext(ctx)
	tests, update := a.selfTests(), a.updateState() // before the first status, so that a change after it is published
	g.Go(func() error { return a.link.Run(online, info) })
	g.Go(func() error { a.doors.Watch(serving); return nil })
	g.Go(func() error { a.measure(ctx); return nil })
	g.Go(func() error { return a.supervise(ctx, tests, update) })
	g.Go(func() error { return a.superviseSettings(ctx) })
	g.Go(func() error { a.writeAll(ctx); return nil })
	g.Go(func() error { a.diagnostics.run(ctx); return nil })
	if a.passes != nil {
		g.Go(func() error { a.passes.run(serving); return nil })
	}
	<-ctx.Done()
	a.finishRequests()
	closed()
	a.doors.Close()
	a.events.flush()
	disconnect()
	err := g.Wait()
	a.climate.Close()
	if errors.Is(err, ErrSettings) && a.ctx.Err() != nil {
		return nil // the agent was stopped meanwhile
	}
	return err
}

// idle reports whether no lock is driven, no claim waits for its grant and no entry at a keypad is judged.
func (a *agent) idle() bool {
	return a.doors.Idle() && (a.passes == nil || a.passes.controller.Idle())
}

// finishRequests serves until the agent is idle, at most for StopDelay.
func (a *agent) finishRequests() {
	tick := time.NewTicker(stopInterval)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < a.config.StopDelay && a.doors.Alive() && !a.idle(); <-tick.C {
		a.config.Alive()
	}
}

// receive dispatches a message from the cloud. It runs in the link's reader and must not block.
func (a *agent) receive(m link.Message) {
	var err error
	switch m.Kind {
	case protocol.KindDoorAsk:
		err = dispatch(m, a.doors.Ask)
	case protocol.KindDoorGrant:
		err = dispatch(m, a.doors.Grant)
	case protocol.KindDoorDeny:
		err = dispatch(m, a.doors.Deny)
	case protocol.KindKeys:
		err = dispatchWrite(a, m, a.applyKeys)
	case protocol.KindBrokers:
		err = dispatchWrite(a, m, a.applyBrokers)
	case protocol.KindUpdate:
		err = dispatchWrite(a, m, func(u protocol.Update) { a.config.Update(a.ctx, u) })
	case protocol.KindRekey:
		err = dispatchWrite(a, m, a.rekey)
	case protocol.KindSettings:
		err = dispatchWrite(a, m, a.receiveSettings)
	case protocol.KindDiagnostics:
		err = dispatch(m, func(d protocol.Diagnostics) { a.diagnostics.receive(d, *a.trusted.Load()) })
	case protocol.KindBeacon, protocol.KindPassList, protocol.KindPassAck:
		err = a.passes.receive(m)
	case protocol.KindClimateCommand:
		err = dispatch(m, func(command protocol.ClimateCommand) {
			a.climate.Command(command, func(r protocol.ClimateResult) { a.answer(m, r) })
		})
	case protocol.KindSensorsRead:
		err = dispatch(m, func(read protocol.SensorsRead) {
			a.climate.Read(read, func(r protocol.SensorsReadings) { a.answer(m, r) })
		})
	}
	a.messages.Set(err)
}

func dispatch[M protocol.Message](m link.Message, to func(M)) error {
	message, err := protocol.Decode[M](m.Payload)
	if err == nil {
		to(message)
	}
	return err
}

// dispatchWrite dispatches a message whose content is written to the disk; see write.
func dispatchWrite[M protocol.Message](a *agent, m link.Message, to func(M)) error {
	return dispatch(m, func(message M) { a.write(func() { to(message) }) })
}

// maxWrites is the number of messages that wait for the disk.
const maxWrites = 32

// write has work done that waits for the disk, in the order of the calls. It does not block: a card can stall, and door messages wait in the
// link's reader. If too much work waits, it is dropped: the cloud repeats these messages until the status shows their effect.
func (a *agent) write(work func()) {
	select {
	case a.writes <- work:
	default:
		a.log.Warn("a message was dropped, because the disk does not respond")
	}
}

// writeAll does the work of write until ctx is done.
func (a *agent) writeAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case work := <-a.writes:
			work()
		}
	}
}

// answer replies to a command, always on the branch's own topic: the broker would reject any other Response Topic.
func (a *agent) answer(to link.Message, m protocol.Message) {
	if named, _, ok := protocol.ParseAgentTopic(to.ResponseTopic); to.ResponseTopic != "" && (!ok || named.Branch != a.config.Branch) {
		a.log.Warn("command names a response topic of another branch", "kind", to.Kind)
	}
	a.link.Send(m, to.CorrelationData, protocol.CommandTTL)
}

// event logs a door event and queues it for the cloud.
func (a *agent) event(e protocol.Event) {
	a.log.Info("event", "kind", e.Kind, "device", e.Device, "request", e.RequestID, "energized_ms", e.EnergizedMs, "detail", e.Detail)
	a.config.Observe(e)
	a.events.add(e)
}

func (a *agent) report(events []protocol.Event) {
	a.link.Send(protocol.Telemetry{At: a.config.Now(), Events: events}, nil, eventTTL)
}

// measure reports the sensors now and every TelemetryInterval.
func (a *agent) measure(ctx context.Context) {
	tick := time.NewTicker(protocol.TelemetryInterval)
	defer tick.Stop()
	for {
		if readings := a.climate.Readings(); len(readings) > 0 { //nolint:contextcheck // the climate received the agent's context in New
			a.link.Send(protocol.Telemetry{At: a.config.Now(), Readings: readings}, nil, protocol.TelemetryInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// applyKeys replaces the keys that verify grants.
func (a *agent) applyKeys(list protocol.KeyList) {
	changed, err := a.keys.apply(list)
	if err != nil {
		a.log.Warn("key list ignored", "epoch", list.Epoch, "error", err)
		return
	}
	if changed {
		a.doors.SetKeys(a.keys.keys)
		keys := a.keys.keys
		a.trusted.Store(&keys)
		a.epoch.Store(a.keys.epoch)
		a.log.Info("grant keys replaced", "epoch", list.Epoch, "keys", len(list.Keys))
	}
	a.link.Refresh() // an old list means that the cloud has missed the last status
}

// rekeyTTL is the lifetime of an answer to a rotation in the outbox. The cloud repeats the question.
const rekeyTTL = 10 * time.Second

// rekey makes new secrets for this agent's credential.
func (a *agent) rekey(m protocol.Rekey) {
	answer, err := a.secrets.rekey(m.Rotation)
	if a.rekeying.Set(err); err == nil { // the cloud asks every two seconds
		a.link.Send(answer, nil, rekeyTTL)
	}
}

// secretAccepted is called with the secret that the broker accepted.
func (a *agent) secretAccepted(secret link.Secret) {
	if err := a.secrets.accepted(secret); err != nil {
		a.log.Error("old secrets not removed", "error", err)
	}
}

// current returns the changing parts of the status.
func (a *agent) current() link.Current {
	c := link.Current{SelfTest: a.selfTests(), Contacts: a.doors.Contacts(), KeyEpoch: a.epoch.Load(), Update: a.config.UpdateStatus()}
	if a.brokers.file != "" {
		c.BrokerEpoch = new(a.brokers.epoch.Load())
	}
	diagnostics := a.diagnostics.current()
	c.Diagnostics = &diagnostics
	if a.config.Settings != nil {
		c.Settings = a.config.Settings.Status()
	}
	if a.passes != nil {
		applied := a.passes.controller.Applied()
		c.SealKey, c.Passes = a.passes.controller.SealKey(), &applied
	}
	return c
}

// selfTests returns the state of the hardware and of the machine.
func (a *agent) selfTests() []protocol.SelfTest {
	return append(a.hardwareTests(), a.config.SelfTest()...)
}

func (a *agent) hardwareTests() []protocol.SelfTest {
	tests := a.doors.SelfTests()
	if a.passes != nil {
		tests = append(tests, a.passes.selfTests()...)
	}
	return tests
}

// supervise feeds the watchdog unless a driver hangs, publishes changes of the self-tests and of the last update, and returns an error if a
// relay line was lost.
func (a *agent) supervise(ctx context.Context, last []protocol.SelfTest, update protocol.UpdateStatus) error {
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for {
		if a.doors.Alive() {
			a.config.Alive()
		}
		if err := a.doors.Lost(); err != nil {
			return err
		}
		tests := a.selfTests()
		if now := a.updateState(); !slices.Equal(tests, last) || now != update {
			last, update = tests, now
			a.link.Refresh()
		}
		a.config.Health(Health{Connected: a.link.Connected(), Failed: failed(tests)})
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-a.config.UpdateChanged:
		}
	}
}

// updateState returns the state of the last update; zero: none.
func (a *agent) updateState() (state protocol.UpdateStatus) {
	if s := a.config.UpdateStatus(); s != nil {
		state = *s
	}
	return state
}

func failed(tests []protocol.SelfTest) (n int) {
	for _, t := range tests {
		if !t.OK {
			n++
		}
	}
	return n
}
