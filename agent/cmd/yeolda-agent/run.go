package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/condition"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/doctor"
	"github.com/yeolda/yeolda/agent/internal/durable"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/agent/internal/logtail"
	"github.com/yeolda/yeolda/agent/internal/rpi"
	"github.com/yeolda/yeolda/agent/internal/systemd"
	cloudsettings "github.com/yeolda/yeolda/agent/settings"
	"github.com/yeolda/yeolda/protocol"
)

// updateResult exists if the last update was rolled back; it contains the reason.
const updateResult = "/var/lib/yeolda-agent-update/rolled-back"

// waitInterval is how often missing or invalid credentials are read again.
const waitInterval = 5 * time.Second

// stopDelay is enough for the longest pulse of a claim that waits for its grant. The unit has more (TimeoutStopSec).
const stopDelay = protocol.GrantAge + protocol.MaxPulse

type runCommand struct {
	files
	Broker string `env:"YEOLDA_BROKER_URL" placeholder:"URL" help:"Instead of the broker in the settings; several of a pool with commas or spaces."`

	SettingsTrial time.Duration `hidden:"" env:"YEOLDA_AGENT_SETTINGS_TRIAL" help:"How long settings of the cloud may take until they have reached it."`
}

// Run runs the agent until the context is done, and starts the program again when other settings are to be used.
func (c *runCommand) Run(ctx context.Context, log *slog.Logger) error {
	err := c.run(ctx, log)
	if errors.Is(err, agent.ErrSettings) {
		return restart(log)
	}
	return err
}

// run runs the agent until the context is done, or returns agent.ErrSettings. Invalid settings never keep it from running: the valid
// sections, and the last valid settings for the others, stay in use, and the status reports the problems.
func (c *runCommand) run(ctx context.Context, log *slog.Logger) (err error) {
	tail := new(logtail.Tail)
	log = slog.New(tail.Handler(log.Handler()))
	lockMemory(log)
	keeper := c.keeper(log)
	settings, problems := c.load(keeper)
	// The locks first: they are de-energised before anything else can fail.
	board, more := newBoard(settings)
	problems = append(problems, more...)
	manager := condition.Condition{Log: log, Name: "notifying the service manager"}
	notify := func(state string) { manager.Set(systemd.Notify(state)) }
	// Ready means that the locks are idle, not that there is a network: a branch starts without one.
	ready := sync.OnceFunc(func() { notify(systemd.Ready) })
	defer func() {
		if !errors.Is(err, agent.ErrSettings) {
			notify(systemd.Stopping)
		}
	}()
	alive := func() { ready(); notify(systemd.Watchdog) }

	id, err := c.awaitIdentity(ctx, settings, alive, log)
	if err != nil {
		return err
	}
	keeper.Enrolled(protocol.Agent{Branch: id.credentials.Branch, Username: id.credentials.Username})
	problems = append(problems, id.problems...)
	for _, p := range problems {
		log.Error("settings", "error", p)
	}
	save := sync.OnceFunc(func() { c.saveSettings(keeper, log) })
	health := health{file: c.stateFile("health")}
	brokerFile := c.stateFile("brokers.json")
	if c.Broker != "" || settings.Broker != "" {
		brokerFile = "" // an operator has chosen the broker of this machine
	}
	report, stop := reporter(func(h agent.Health) {
		if err := health.write(h); err != nil {
			log.Debug("health", "error", err)
		}
		if h.Connected && len(problems) == 0 {
			save()
		}
	})
	defer stop()
	updater, updateChanged := c.updater(cmp.Or(settings.CA, id.credentials.CA), id.clock.now, log)
	return agent.Run(ctx, agent.Config{
		Branch: id.credentials.Branch, Username: id.credentials.Username, Password: id.credentials.Password,
		Key: id.credentials.Key, SecretFile: c.stateFile("secrets.json"),
		GrantKeys: id.credentials.GrantKeys, KeyFile: c.stateFile("keys.json"),
		BrokerURL: id.broker, BrokerFile: brokerFile, TLS: id.tls, HandshakeFailed: func(err error) { id.clock.learn(err, id.tls.RootCAs) }, AddressFile: c.stateFile("address"), PassDir: c.stateFile("passes"), Version: release(), Logger: log,
		Tail: tail, Doctor: c.examine,
		Alive: alive, Update: updater.Ask, UpdateStatus: updater.Status, UpdateChanged: updateChanged, Settings: keeper,
		Health: report, StopDelay: stopDelay,
		SelfTest: cached(func() []protocol.SelfTest { return c.selfTests(problems, settings) }),
	}, board)
}

// identity is what the agent needs to connect.
type identity struct {
	credentials config.Credentials
	broker      string
	tls         *tls.Config
	clock       *certificateClock // of tls
	problems    []config.Problem
}

// awaitIdentity reads the credentials. Under systemd it waits until they are valid: restarting in a loop would wear out the SD
// card, and the locks must stay idle.
func (c *runCommand) awaitIdentity(ctx context.Context, settings config.Settings, alive func(), log *slog.Logger) (identity, error) {
	missing := condition.Condition{Log: log, Name: "identity of this machine"}
	for {
		id, err := c.identity(settings)
		missing.Set(err)
		if err == nil || os.Getenv("NOTIFY_SOCKET") == "" {
			return id, err
		}
		alive()
		select {
		case <-ctx.Done():
			return id, err
		case <-time.After(waitInterval):
		}
	}
}

func (c *runCommand) identity(settings config.Settings) (id identity, err error) {
	if id.credentials, err = config.ReadCredentials(c.Credentials); err != nil {
		return id, err
	}
	id.broker = cmp.Or(c.Broker, settings.Broker, id.credentials.Broker)
	if _, err := link.ParseURLs(id.broker); err != nil && id.credentials.Broker != "" {
		id.problems = append(id.problems, config.Problem{Section: "broker", Err: err})
		id.broker = id.credentials.Broker
	}
	brokers, err := link.ParseURLs(id.broker)
	if err != nil {
		return id, err
	}
	if slices.ContainsFunc(brokers, link.Exposed) {
		id.problems = append(id.problems, config.Problem{Section: "broker", Err: errors.New("the connection is not encrypted: the network can read the agent's password")})
	}
	id.clock = newCertificateClock(c.files)
	if id.tls, err = config.TLS(cmp.Or(settings.CA, id.credentials.CA), id.clock.now); err != nil {
		id.problems = append(id.problems, config.Problem{Section: "ca", Err: err})
		id.tls, err = config.TLS("", id.clock.now)
	}
	return id, err
}

// newBoard connects the hardware. Parts that cannot be used become problems.
func newBoard(settings config.Settings) (agent.Board, []config.Problem) {
	return complete(agent.Board{Locks: rpi.Locks(settings.Doors), Keypads: rpi.Keypads(settings.Doors)}, settings)
}

// complete adds everything but doors to a board.
func complete(board agent.Board, settings config.Settings) (agent.Board, []config.Problem) {
	sys := os.DirFS("/sys")
	var problems []config.Problem
	units, err := rpi.AirConditioners(settings.AirConditioners, sys)
	if err != nil {
		problems = append(problems, config.Problem{Section: "air_conditioner", Err: err})
	}
	sensors, err := rpi.Sensors(settings.Sensors, sys)
	if err != nil {
		problems = append(problems, config.Problem{Section: "sensor", Err: err})
	}
	// A status has a maximum size, and names have rules: a part that does not fit must not cost the doors.
	for _, u := range units {
		with := board
		with.AirConditioners = append(slices.Clone(board.AirConditioners), u)
		if err := with.Check(); err != nil {
			problems = append(problems, config.Problem{Section: "air_conditioner " + u.Name, Err: err})
			continue
		}
		board = with
	}
	for _, s := range sensors {
		with := board
		with.Sensors = append(slices.Clone(board.Sensors), s)
		if err := with.Check(); err != nil {
			problems = append(problems, config.Problem{Section: "sensor " + s.Location, Err: err})
			continue
		}
		board = with
	}
	return board, problems
}

// selfTests returns the problems of the settings, the result of a failed update, and the findings about the machine.
func (c *runCommand) selfTests(problems []config.Problem, settings config.Settings) []protocol.SelfTest {
	var tests []protocol.SelfTest
	for _, p := range problems {
		tests = append(tests, protocol.SelfTest{Name: p.Name(), Detail: protocol.Clip(p.Error())})
	}
	if text, err := os.ReadFile(updateResult); err == nil {
		tests = append(tests, protocol.SelfTest{Name: "update", Detail: protocol.Clip(string(text))})
	}
	return append(tests, doctor.SelfTests(os.DirFS("/"), settings.Doors, cmp.Or(c.State, stateDirectory))...)
}

// examine returns the report of the doctor for diagnostics.
func (f *files) examine(ctx context.Context) string {
	var report bytes.Buffer
	d := f.doctor(&report)
	d.Examine(ctx)
	return report.String()
}

// doctor returns a doctor of this machine.
func (f *files) doctor(out io.Writer) doctor.Doctor {
	clock := newCertificateClock(*f)
	return doctor.Doctor{Root: os.DirFS("/"), SettingsFile: f.settingsInUse(), CredentialsFile: f.Credentials,
		HealthFile: filepath.Join(cmp.Or(f.State, stateDirectory), "health"), Now: clock.now, Learn: clock.learn, Out: out}
}

// cached limits how often the machine is examined.
func cached(examine func() []protocol.SelfTest) func() []protocol.SelfTest {
	const lifetime = 15 * time.Second
	var mu sync.Mutex
	var tests []protocol.SelfTest
	var examined time.Time
	return func() []protocol.SelfTest {
		mu.Lock()
		defer mu.Unlock()
		if examined.IsZero() || time.Since(examined) > lifetime {
			tests, examined = examine(), time.Now()
		}
		return tests
	}
}

// stateFile returns the name of a file in the state directory, or "" without one.
func (f *files) stateFile(name string) string {
	if f.State == "" {
		return ""
	}
	return filepath.Join(f.State, name)
}

func (f *files) savedSettings() string { return f.stateFile("settings.toml") }

// saveSettings keeps a copy of settings that have worked.
func (f *files) saveSettings(keeper *cloudsettings.Keeper, log *slog.Logger) {
	text, _ := keeper.Text()
	if f.State == "" {
		return
	}
	if saved, err := os.ReadFile(f.savedSettings()); err == nil && string(saved) == text {
		return
	}
	if err := durable.Replace(f.savedSettings(), []byte(text)); err != nil {
		log.Warn("settings not saved", "error", err)
	}
}

// replace writes a file atomically.
func replace(name string, text []byte, mode os.FileMode) error {
	if err := os.WriteFile(name+".new", text, mode); err != nil { //nolint:gosec // a file that the operator has named
		return err
	}
	return os.Rename(name+".new", name)
}

// lastWriteDelay is how long the last report may take to be written. A card that stalls must not keep the agent from ending.
const lastWriteDelay = 2 * time.Second

// reporter returns a function that passes the health of the agent to write, in the background: it is called where the watchdog is fed,
// and a card can stall. A report that comes while another one is written is dropped; the agent repeats it. stop waits for the last
// write, at most for lastWriteDelay.
func reporter(write func(agent.Health)) (report func(agent.Health), stop func()) {
	reports, stopped := make(chan agent.Health), make(chan struct{})
	go func() {
		defer close(stopped)
		for h := range reports {
			write(h)
		}
	}()
	report = func(h agent.Health) {
		select {
		case reports <- h:
		default:
		}
	}
	stop = func() {
		close(reports)
		select {
		case <-stopped:
		case <-time.After(lastWriteDelay):
		}
	}
	return report, stop
}

// health reports the state of the agent to the update trial and to the next start.
type health struct {
	file    string
	last    string
	written time.Time
}

// healthInterval is how often an unchanged state is written again. The time of the file is a lower limit of the present time
// for a Pi that starts without a network.
const healthInterval = time.Hour

// write stores the state if it changed. It is called every two seconds.
func (h *health) write(state agent.Health) error {
	connected := "no"
	if state.Connected {
		connected = "yes"
	}
	text := fmt.Sprintf("connected=%s\nfailed=%d\n", connected, state.Failed)
	if h.file == "" || text == h.last && time.Since(h.written) < healthInterval {
		return nil
	}
	if err := replace(h.file, []byte(text), 0o600); err != nil {
		return err // the next call tries again: the trial of an update reads the file
	}
	h.last, h.written = text, time.Now()
	return nil
}
