// Package branch runs one simulated branch: the real agent on simulated hardware, connected to the broker through a
// simulated network, with a power supply that can fail.
//
//	on ── power-off ──► off: the agent is killed, relays fall, no DISCONNECT
//	▲                    │
//	└── faults cleared ──┘
//
// An agent that exits while there is power is restarted after a second, as its systemd unit does.
package branch

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/internal/netsim"
	"github.com/yeolda/yeolda/firmware-sim/internal/recording"
	"github.com/yeolda/yeolda/protocol"
)

// restartDelay is RestartSec of the agent's unit.
const restartDelay = time.Second

// ErrFault is returned when a fault does not fit the branch.
var ErrFault = errors.New("not a fault of this branch")

// Config configures a branch beside its hardware.
type Config struct {
	Branch    string
	Brokers   []*url.URL         // see netsim.New
	Username  string             // of the agent's credential; empty: protocol.AgentID(Branch)
	Password  string             // of the agent's credential
	Key       ed25519.PrivateKey // of an enrolled agent; nil: the password is used
	GrantKeys []ed25519.PublicKey
	Version   string
	PassDir   string // of the agent's passes; empty: it reads no keypad
	// Settings is the settings file of the simulated Pi: the doors that it names are those that the agent knows, and a broker other
	// than Brokers does not exist. Empty: the agent knows all doors, unless Blank.
	Settings      string
	Blank         bool          // a new Pi: it knows no door before settings name it
	SettingsTrial time.Duration // of settings from the cloud; 0: that of the agent
	Logger        *slog.Logger
	// Changed receives every change, in order. It must neither block nor call back into the branch.
	Changed func(Change)
}

// Change is one change; exactly one field is set.
type Change struct {
	hardware.Change
	Presence *Presence `json:"presence,omitempty"`
	Message  *Message  `json:"message,omitempty"`
	Playback *Playback `json:"tape,omitempty"`
}

// Presence is the state of the branch as a whole.
type Presence struct {
	Online  bool       `json:"online"`
	Powered bool       `json:"powered"`
	Faults  fault.List `json:"faults"`
}

// Branch is one simulated branch. It is safe for concurrent use.
type Branch struct {
	updates          // guarded by mu
	stopAgent func() // stops the agent cleanly, to start it again; guarded by mu
	disk      string // folder of the agent's files, which survive a restart of the agent; set by Run
	cfg       Config
	hardware  *hardware.Installation
	link      *netsim.Link

	recorder recording.Recorder
	player   *recording.Player

	editing sync.Mutex // serialises changes of the faults

	mu      sync.Mutex // never held while the network is changed: its taps lock it
	faults  fault.List
	wires   int           // connections on which the agent is online
	kill    func()        // cuts the running agent's power; nil while none runs
	power   chan struct{} // closed while there is power
	cloning chan struct{} // closed at the next start or end of a clone
	machine machine
}

// New returns a branch; Run starts it.
func New(plan hardware.Plan, cfg Config) (*Branch, error) {
	if !protocol.ValidBranch(cfg.Branch) {
		return nil, fmt.Errorf("branch: %q is not a branch code", cfg.Branch)
	}
	b := &Branch{cfg: cfg, power: make(chan struct{}), cloning: make(chan struct{})}
	close(b.power)
	b.machine.start(true)
	b.player = recording.NewPlayer(b.act, b.replayed)
	var err error
	if b.hardware, err = hardware.New(plan, b.hardwareChanged); err != nil {
		return nil, fmt.Errorf("branch %s: %w", cfg.Branch, err)
	}
	if b.link, err = netsim.New(cfg.Brokers, b.newWire); err != nil {
		return nil, fmt.Errorf("branch %s: %w", cfg.Branch, err)
	}
	return b, nil
}

func (b *Branch) hardwareChanged(c hardware.Change) {
	b.recorder.Changed(c)
	b.cfg.Changed(Change{Change: c})
}

// Name returns the branch's code.
func (b *Branch) Name() string { return b.cfg.Branch }

// Hardware returns the branch's hardware, on which the panel acts.
func (b *Branch) Hardware() *hardware.Installation { return b.hardware }

// State returns the complete state of the branch.
func (b *Branch) State() hardware.State {
	s := b.hardware.State()
	p := b.Presence()
	s.Branch, s.Online, s.Powered, s.Faults = b.cfg.Branch, p.Online, p.Powered, p.Faults
	return s
}

// Presence is the state of the branch as a whole.
func (b *Branch) Presence() Presence {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.presenceLocked()
}

func (b *Branch) presenceLocked() Presence {
	_, off := b.faults.At(fault.PowerOff, "")
	return Presence{Online: b.wires > 0, Powered: !off, Faults: append(fault.List{}, b.faults...)}
}

// SetFault switches a fault on and replaces an earlier one of the same kind and device. Errors match ErrFault.
func (b *Branch) SetFault(f fault.Fault) error {
	if err := f.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrFault, err)
	}
	if f.Device != "" && !b.hardware.HasDevice(f.Device) {
		return fmt.Errorf("%w: %s has no device %q", ErrFault, b.cfg.Branch, f.Device)
	}
	if f.Kind == fault.Reboot {
		b.reboot(f.HardwareClock)
		return nil
	}
	b.change(func(l fault.List) fault.List { return l.With(f) })
	return nil
}

// reboot restarts the machine at once, with or without a hardware clock. The agent starts again as after a power cut.
func (b *Branch) reboot(hardware bool) {
	b.editing.Lock()
	defer b.editing.Unlock()
	b.mu.Lock()
	kill := b.kill
	b.mu.Unlock()
	b.machine.start(hardware)
	if kill != nil {
		kill()
	}
}

// ClearFaults switches all faults off and the power on.
func (b *Branch) ClearFaults() { b.change(func(fault.List) fault.List { return nil }) }

// ClearFault switches one fault off. It does nothing if the fault is not on.
func (b *Branch) ClearFault(kind fault.Kind, device string) {
	b.change(func(l fault.List) fault.List { return l.Without(kind, device) })
}

func (b *Branch) change(edit func(fault.List) fault.List) {
	b.editing.Lock()
	defer b.editing.Unlock()

	b.mu.Lock()
	_, wasOff := b.faults.At(fault.PowerOff, "")
	_, wasCloned := b.faults.At(fault.Clone, "")
	b.faults = edit(b.faults)
	if _, cloned := b.faults.At(fault.Clone, ""); cloned != wasCloned {
		close(b.cloning)
		b.cloning = make(chan struct{})
	}
	faults, kill := b.faults, b.kill
	_, off := faults.At(fault.PowerOff, "")
	switch {
	case off && !wasOff:
		b.power = make(chan struct{})
	case !off && wasOff:
		close(b.power)
	}
	b.mu.Unlock()

	_, cut := faults.At(fault.NetworkCut, "")
	lag, _ := faults.At(fault.NetworkLag, "")
	loss, _ := faults.At(fault.Loss, "")
	_, duplicate := faults.At(fault.Duplicate, "")
	reorder, _ := faults.At(fault.Reorder, "")
	b.hardware.SetFaults(faults)
	b.link.Set(netsim.Conditions{
		Cut: cut, Lag: lag.Delay(), Loss: float64(loss.Percent) / 100, Duplicate: duplicate, Reorder: reorder.Delay(),
	})
	if off && kill != nil {
		kill()
	}
	if off && !wasOff {
		b.machine.restart()
	}

	b.recorder.Faults(faults)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notifyPresence()
}

// notifyPresence reports the presence. mu is held.
func (b *Branch) notifyPresence() {
	p := b.presenceLocked()
	b.cfg.Changed(Change{Presence: &p})
}

// Run runs the branch until ctx ends. Then the agent disconnects in order.
func (b *Branch) Run(ctx context.Context) error {
	defer b.link.Close()
	defer b.player.Stop()
	disk, err := os.MkdirTemp("", "yeolda-sim-")
	if err != nil {
		return fmt.Errorf("branch %s: %w", b.cfg.Branch, err)
	}
	defer func() { _ = os.RemoveAll(disk) }()
	b.disk = disk
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.hardware.Run(ctx) })
	g.Go(func() error { return b.runClones(ctx) })
	g.Go(func() error {
		for ctx.Err() == nil {
			b.mu.Lock()
			power := b.power
			b.mu.Unlock()
			select {
			case <-power:
			case <-ctx.Done():
				continue
			}
			if err := b.runAgent(ctx); err != nil {
				b.cfg.Logger.Warn("agent ended", "branch", b.cfg.Branch, "error", err)
				pause(ctx, restartDelay)
			}
		}
		return ctx.Err()
	})
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("branch %s: %w", b.cfg.Branch, err)
	}
	return nil
}

// runAgent runs the agent once and returns the agent's own error; a kill or a stop returns nil.
func (b *Branch) runAgent(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cable := b.link.Plug()
	board, err := b.hardware.PowerOn()
	if err != nil {
		return err
	}
	keeper, described := b.settingsOfPi(cmp.Or(b.cfg.Username, protocol.AgentID(b.cfg.Branch)))
	board = b.described(board, described)
	kill := func() { // the order matters: no message may be sent and no relay driven in between
		cable.Pull()
		b.hardware.PowerOff()
		stop()
	}
	b.mu.Lock()
	b.kill, b.stopAgent = kill, stop
	_, off := b.faults.At(fault.PowerOff, "")
	b.mu.Unlock()
	if off {
		kill()
	}

	err = agent.Run(ctx, agent.Config{
		Branch: b.cfg.Branch, BrokerURL: b.lines(), GrantKeys: b.cfg.GrantKeys,
		Username: b.cfg.Username, Password: b.cfg.Password, Key: b.cfg.Key,
		SecretFile: filepath.Join(b.disk, "secrets.json"), KeyFile: filepath.Join(b.disk, "keys.json"),
		PassDir: b.cfg.PassDir, Clocks: &b.machine, Settings: keeper,
		Update: b.update, UpdateStatus: b.updateStatus, SelfTest: b.selfTests,
		Dial: b.dialer(described, cable.Dial), Version: b.version(), Logger: b.cfg.Logger,
		Now: b.wallClock, Observe: b.heard,
	}, board)

	b.mu.Lock()
	b.kill = nil
	b.mu.Unlock()
	stopped := ctx.Err() != nil || errors.Is(err, agent.ErrSettings)
	kill()
	if stopped {
		return nil
	}
	return err
}

// lines returns the addresses at which the agent reaches the brokers through its network, which does TLS.
func (b *Branch) lines() string {
	lines := make([]*url.URL, len(b.cfg.Brokers))
	for i, broker := range b.cfg.Brokers {
		lines[i] = &url.URL{Scheme: "mqtt", Host: broker.Host}
	}
	return addresses(lines)
}

// addresses returns the addresses of brokers as the agent reads them.
func addresses(brokers []*url.URL) string {
	texts := make([]string, len(brokers))
	for i, broker := range brokers {
		texts[i] = broker.String()
	}
	return strings.Join(texts, ",")
}

// runClones runs the agent of another machine with this branch's credential while the fault is on. It uses a connection of
// its own, without the faults of the branch's network.
func (b *Branch) runClones(ctx context.Context) error {
	for ctx.Err() == nil {
		b.mu.Lock()
		_, on := b.faults.At(fault.Clone, "")
		changed := b.cloning
		b.mu.Unlock()
		clone, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		if on {
			running.Go(func() {
				err := agent.Run(clone, agent.Config{
					Branch: b.cfg.Branch, BrokerURL: addresses(b.cfg.Brokers), GrantKeys: b.cfg.GrantKeys,
					Username: b.cfg.Username, Password: b.cfg.Password, Key: b.cfg.Key,
					Version: b.cfg.Version + " clone", Logger: slog.New(slog.DiscardHandler),
				}, agent.Board{})
				if clone.Err() == nil {
					b.cfg.Logger.Warn("clone ended", "branch", b.cfg.Branch, "error", err)
				}
			})
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
		running.Wait()
	}
	return ctx.Err()
}

// wallClock is the agent's time of day. Like the clock of a Pi that is set, it does not show how much time has passed.
func (b *Branch) wallClock() time.Time {
	b.mu.Lock()
	jump, _ := b.faults.At(fault.Clock, "")
	step, _ := b.faults.At(fault.ClockStep, "")
	b.mu.Unlock()
	return time.Now().Round(0).Add(jump.Offset() + step.Offset())
}

// heard receives the agent's events at its doors.
func (b *Branch) heard(e protocol.Event) {
	if e.Kind == protocol.EventEnergized {
		b.hardware.Energized(e.Device, e.RequestID, e.Source)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
