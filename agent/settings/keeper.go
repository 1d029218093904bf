// Package settings keeps the settings that the cloud has sent beside the settings file of the machine, and returns to the settings
// before if the agent does not reach the cloud with new ones.
//
//	received ─► checked ─► stored as a trial ─► restart with it ─► connected for SettleTime ─► in use
//	               │                                   └─► not connected within TrialTimeout, a hardware self-test worse,
//	               └─► refused                             or restarted again and again ─► rolled back, restart with the previous settings
//
// One file holds the whole state and is replaced in one step, so that a power failure at any moment leaves the state before or
// after. The start with a trial is counted before the hardware is touched: settings that end the agent are rolled back, too.
//
// If the settings file of the machine is edited and has no mistake, it is in use from the next start on, and it is passed to the
// cloud as the next version: the last edit counts, wherever it was made.
package settings

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

const (
	// TrialTimeout is how long an agent with new settings may take until it has been connected for SettleTime.
	TrialTimeout = 2 * time.Minute
	// SettleTime is how long an agent with new settings must be connected without interruption.
	SettleTime = TrialTimeout / settleShare

	settleShare = 12
	// maxStarts is the number of starts with new settings that did not end the trial, after which they are rolled back.
	maxStarts = 3
	// storeInterval is the time between attempts to store the end of a trial.
	storeInterval = time.Minute
)

// Config configures a Keeper. File, Check and Log are required.
type Config struct {
	Disk Disk                   // nil: no settings of the cloud are taken
	File func() (string, error) // the settings file of the machine
	// Saved returns a copy of the settings that worked last, or an empty text; nil: there is none. It is used if the state is damaged.
	Saved func() string
	// Check returns the mistakes of settings: those for which the agent would not use all of them at its start.
	Check func(text string) error

	TrialTimeout time.Duration // 0: the constant; the settle time keeps its share of it

	Log *slog.Logger
}

// Keeper keeps the settings of one agent. It is safe for concurrent use.
type Keeper struct {
	config Config
	settle time.Duration
	file   string // the file of the machine at the start
	began  time.Time

	mu        sync.Mutex
	agent     protocol.Agent // to which settings are addressed
	state     state
	mistake   error  // of the edited file of the machine, which is not in use
	running   string // the settings with which this agent was started
	fromFile  bool   // they are the file of the machine
	trying    bool   // they are on trial
	connected time.Time
	failing   []string // hardware self-tests
	before    []string // those that failed with the settings to return to, if the running ones are on trial
	restart   bool
	failed    time.Time // when storing the end of a trial failed last; zero: it is stored

	shown atomic.Pointer[protocol.SettingsStatus] // of the stored state
}

// state is the content of the file.
type state struct {
	Username string                    `json:"username"` // to which the numbers of versions belong
	Highest  uint64                    `json:"highest"`  // the highest version received
	Current  *version                  `json:"current,omitempty"`
	File     string                    `json:"file,omitempty"` // hash of the file of the machine when Current or Trial was stored
	Trial    *trial                    `json:"trial,omitempty"`
	Ended    *protocol.SettingsOutcome `json:"ended,omitempty"`
}

type version struct {
	Number uint64 `json:"number"`
	Text   string `json:"text"`
}

type trial struct {
	version
	Starts  int      `json:"starts"`
	Failing []string `json:"failing,omitempty"` // hardware self-tests that failed before
}

// Open reads the stored state and decides on the settings of this run; see Text. A state that cannot be read or stored does not keep
// the agent from running: it then uses the previous settings, or the file of the machine.
func Open(config Config) *Keeper {
	if config.TrialTimeout == 0 {
		config.TrialTimeout = TrialTimeout
	}
	k := &Keeper{config: config, settle: config.TrialTimeout / settleShare, began: time.Now()}
	var fileErr error
	if k.file, fileErr = config.File(); fileErr != nil {
		config.Log.Warn("settings file of the machine was not read", "error", fileErr)
	}
	var before state
	if config.Disk != nil {
		err := read(config.Disk, &k.state)
		if before = k.state; err != nil {
			config.Log.Error("the stored settings of the cloud are damaged", "error", err, "copy_used", k.restore())
		}
	}
	if fileErr == nil {
		k.heedFile()
	}
	if t := k.state.Trial; t != nil {
		next := *t
		if next.Starts++; next.Starts > maxStarts {
			k.endTrial(fmt.Sprintf("the agent was started %d times and did not reach the cloud", maxStarts))
		} else {
			k.state.Trial = &next
		}
	}
	if err := k.store(before); err != nil {
		config.Log.Error("settings on trial are not used", "error", err)
		k.state.Trial = nil // its start was not counted
	}
	k.choose()
	k.show()
	return k
}

// restore takes the copy of the settings that worked last, if there is one, in place of a damaged state. It has no number, so the cloud sends
// its settings again.
func (k *Keeper) restore() bool {
	if k.config.Saved == nil {
		return false
	}
	text := k.config.Saved()
	if blank(text) || k.config.Check(text) != nil {
		return false
	}
	k.state.Current, k.state.File = &version{0, text}, hash(k.file)
	return true
}

// Enrolled names the credential of the machine, before anything is received. If the machine was enrolled again, the settings in use
// remain, because the hardware is the same, but they have no number.
func (k *Keeper) Enrolled(agent protocol.Agent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.show()
	k.agent = agent
	if k.state.Username == agent.Username {
		return
	}
	before := k.state
	k.state = state{Username: agent.Username, File: before.File}
	if before.Current != nil {
		k.state.Current = &version{0, before.Current.Text}
	}
	k.restart = k.trying
	if before.Username == "" {
		return
	}
	if err := k.store(before); err != nil {
		k.config.Log.Error("settings not stored", "error", err)
	}
}

// heedFile gives the file of the machine precedence if it was edited after the settings of the cloud had been stored. A file with only
// comments is not an edit: an update of the package replaces its own file unless it was edited.
func (k *Keeper) heedFile() {
	if k.state.Current == nil && k.state.Trial == nil || k.state.File == hash(k.file) || blank(k.file) {
		return
	}
	if err := k.config.Check(k.file); err != nil {
		k.mistake = fmt.Errorf("the edited file is not in use: %w", err)
		return
	}
	if k.state.Trial != nil {
		k.endTrial("the settings file of the machine was edited")
	}
	k.state.Current, k.state.File = nil, ""
}

// choose selects the settings of this run.
func (k *Keeper) choose() {
	switch {
	case k.state.Trial != nil:
		k.running, k.trying, k.before = k.state.Trial.Text, true, k.state.Trial.Failing
	case k.state.Current != nil:
		k.running = k.state.Current.Text
	default:
		k.running, k.fromFile = k.file, true
	}
}

// Text returns the settings with which this agent is to run, and whether they are the file of the machine.
func (k *Keeper) Text() (text string, fromFile bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running, k.fromFile
}

// Receive takes settings from the cloud. Those that are not newer, and those that no key has signed for this agent, are ignored.
// It reports whether the status has changed.
func (k *Keeper) Receive(m protocol.Settings, keys []ed25519.PublicKey) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.show()
	if k.config.Disk == nil || m.Version <= k.state.Highest {
		return false
	}
	log := k.config.Log.With("version", m.Version)
	if err := m.Verify(k.agent, keys...); err != nil {
		log.Warn("settings ignored", "error", err)
		return false
	}
	before, restart := k.state, k.restart
	k.state.Highest = m.Version
	err := k.config.Check(m.Text)
	if err == nil {
		k.take(version{m.Version, m.Text})
	} else {
		log.Error("settings refused", "error", err)
		k.refuse(m.Version, err)
	}
	if err := k.store(before); err != nil {
		log.Error("settings not stored", "error", err)
		k.state, k.restart = before, restart
		k.refuse(m.Version, err)
		return true
	}
	if k.restart && err == nil {
		log.Info("settings received: the agent restarts with them as soon as no door is open")
	}
	return true
}

func (k *Keeper) refuse(number uint64, reason error) {
	k.state.Ended = &protocol.SettingsOutcome{Version: number, State: protocol.SettingsRefused, Detail: protocol.Clip(reason.Error())}
}

// take begins a trial of settings. Those with which the agent runs already only get the number, without a restart.
func (k *Keeper) take(received version) {
	k.state.File = hash(k.file)
	switch {
	case k.trying && k.state.Trial != nil && received.Text == k.running:
		k.state.Trial = &trial{version: received, Starts: k.state.Trial.Starts, Failing: k.state.Trial.Failing}
	case !k.trying && received.Text == k.running:
		k.state.Current, k.state.Trial, k.state.Ended = &received, nil, nil
		k.fromFile, k.restart = false, false
	default:
		failing := k.failing
		if k.trying {
			failing = k.before
		}
		k.state.Trial = &trial{version: received, Failing: slices.Clone(failing)}
		k.restart = true
	}
}

// Observe records whether the agent is connected and which hardware self-tests fail. It is called every few seconds, ends
// a trial, and reports whether the status has changed.
func (k *Keeper) Observe(connected bool, failing []string) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.show()
	k.failing = failing
	now := time.Now()
	switch {
	case !connected:
		k.connected = time.Time{}
	case k.connected.IsZero():
		k.connected = now
	}
	if !k.failed.IsZero() && now.Sub(k.failed) >= storeInterval {
		k.storeEnd(state{})
	}
	if !k.trying || k.restart {
		return false
	}
	settled := connected && now.Sub(k.connected) >= k.settle
	worse := slices.IndexFunc(failing, func(name string) bool { return !slices.Contains(k.state.Trial.Failing, name) })
	if k.first() {
		worse = -1
	}
	before, log := k.state, k.config.Log.With("version", k.state.Trial.Number)
	switch {
	case settled && worse >= 0:
		k.endTrial("this self-test fails: " + failing[worse])
	case settled:
		k.state.Current, k.state.Trial, k.state.Ended = &k.state.Trial.version, nil, nil
		k.trying = false
		log.Info("settings in use")
	case now.Sub(k.began) >= k.config.TrialTimeout:
		k.endTrial(fmt.Sprintf("not connected for %v within %v", k.settle, k.config.TrialTimeout))
	default:
		return false
	}
	k.restart = k.trying // with the previous settings
	k.storeEnd(before)
	return true
}

// storeEnd stores the end of a trial. If that fails, the next start counts as one of the trial, and Observe tries again.
func (k *Keeper) storeEnd(before state) {
	err := k.store(before)
	switch {
	case err == nil:
		k.failed = time.Time{}
		return
	case k.failed.IsZero():
		k.config.Log.Error("settings not stored", "error", err)
	}
	k.failed = time.Now()
}

// first reports whether there are no settings to return to, as on a machine that replaces another one: if one of its doors fails, the
// others still work with the settings on trial, and none without.
func (k *Keeper) first() bool {
	if k.state.Current != nil {
		return blank(k.state.Current.Text)
	}
	return blank(k.file)
}

// endTrial rolls the trial back.
func (k *Keeper) endTrial(reason string) {
	number := k.state.Trial.Number
	k.config.Log.Error("settings rolled back", "version", number, "reason", reason)
	k.state.Ended = &protocol.SettingsOutcome{Version: number, State: protocol.SettingsRolledBack, Detail: protocol.Clip(reason)}
	k.state.Trial = nil
}

// RestartDue reports whether the agent is to be started again, with other settings.
func (k *Keeper) RestartDue() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.restart
}

// Status describes the settings to the cloud. It is nil if the agent takes none. It does not wait for the disk.
func (k *Keeper) Status() *protocol.SettingsStatus { return k.shown.Load() }

// show updates the status. mu is held.
func (k *Keeper) show() {
	if k.config.Disk == nil {
		return
	}
	s := &protocol.SettingsStatus{Highest: k.state.Highest, Ended: k.state.Ended}
	if k.state.Current != nil {
		s.Version = k.state.Current.Number
	}
	if k.state.Trial != nil {
		s.Trial = k.state.Trial.Number
	}
	k.shown.Store(s)
}

// Mistake returns the mistake of the file of the machine if it was edited, and is therefore not in use.
func (k *Keeper) Mistake() error { return k.mistake }

// Unknown returns the settings that the cloud does not have: those of the machine's file, without a mistake. ok is false if there
// are none.
func (k *Keeper) Unknown() (m protocol.SettingsFile, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	numbered := k.state.Current != nil && k.state.Current.Number > 0
	if k.config.Disk == nil || k.trying || k.restart || numbered || blank(k.running) || k.config.Check(k.running) != nil {
		return m, false
	}
	m = protocol.SettingsFile{Base: k.state.Highest, Text: k.running}
	return m, m.Validate() == nil
}

// blank reports whether settings contain only comments, as those of the package.
func blank(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

func (k *Keeper) store(before state) error {
	if k.config.Disk == nil || same(before, k.state) {
		return nil
	}
	return write(k.config.Disk, k.state)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
