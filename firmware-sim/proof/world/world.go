package world

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
)

// Times that a world with generated branches shortens, so that a soak sees many of them end.
const (
	HoldTTL    = 20 * time.Second
	DepositDue = 30 * time.Second
)

// Credentials of the world.
const (
	AdminID, AdminPassword   = "hq", "hq-demo"
	brokerUser, brokerSecret = "cloud", "secret-of-the-cloud"
)

// Options describe a world.
type Options struct {
	Root     string         // the checkout, from which the programs are built unless Bin has them
	Bin      string         // a directory with the programs; empty: they are built
	Branches int            // how many to generate, with short times; 0: the demo's branches, with the times of the interface
	Zone     *time.Location // of all generated branches; nil: four zones in turn
	Env      []string       // additional settings of the service
	Database Servers        // of the caller; none: a PostgreSQL of the world's own
	Pool     Pool           // the brokers
	// Clocks are by how much the machines of the replicas are ahead of the database's, as [Clocks] returns them; none: all are
	// right. The programs are built for it, so Bin must be empty.
	Clocks []time.Duration
	Log    io.Writer // receives the output of all programs; nil: LogFile
}

// Servers are the URLs of a database that the caller runs, for the owner of its tables and for the service. The world puts no
// fault proxy in front of it.
type Servers struct{ Owner, Service string }

// World is the running system.
type World struct {
	Branches  []Branch
	Database  string // URL, straight to PostgreSQL
	Sandbox   string // http://…
	Simulator string // http://…
	Pool      Pool
	Brokers   []Broker
	Replicas  []*Replica
	Postgres  *Process
	LogFile   string // the output of all programs
	// Standby are credentials of the first two generated branches beside the active ones, for second agents.
	Standby   []Credential
	GrantKeys []ed25519.PublicKey // public keys that agents trust

	dir       string
	bin       string   // of the programs
	env       []string // of the service's commands
	callbacks *faultproxy.Proxy
	processes []*Process // in the order in which they were started
	log       io.Writer
	logFile   *os.File
	agents    []string // branches with an agent
	files     struct{ branches, simulation string }
}

// Credential is an agent's credential at the broker.
type Credential struct{ Branch, Username, Password string }

// Replica is one process of the cloud and its links.
type Replica struct {
	*Process
	API       string        // http://…/api
	Metrics   string        // http://…
	Ahead     time.Duration // of its machine's clock, from the database's
	Database  *faultproxy.Proxy
	Brokers   []*faultproxy.Proxy // to each broker; with embedded brokers, from its peers
	Providers *faultproxy.Proxy
}

// links returns the links of a replica. Those that were not made yet are missing.
func (r *Replica) links() []*faultproxy.Proxy {
	return slices.DeleteFunc(append(slices.Clone(r.Brokers), r.Database, r.Providers), func(l *faultproxy.Proxy) bool { return l == nil })
}

// Start starts a world. If it fails, it leaves nothing behind.
func Start(ctx context.Context, options Options) (_ *World, err error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	w := &World{dir: dir, log: options.Log, Pool: options.Pool}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.log == nil {
		w.LogFile = filepath.Join(dir, "log")
		if w.logFile, err = os.Create(w.LogFile); err != nil {
			return nil, err
		}
		w.log = w.logFile
	}
	if err := w.addBranches(options); err != nil {
		return nil, err
	}
	bin := options.Bin
	if bin == "" {
		bin = dir
		if err := build(ctx, options, dir); err != nil {
			return nil, err
		}
	}
	return w, w.start(ctx, bin, options)
}

func build(ctx context.Context, options Options, dir string) error {
	if len(options.Clocks) > 0 {
		return buildSkewed(ctx, options.Root, dir)
	}
	return Build(ctx, options.Root, dir)
}

func (w *World) start(ctx context.Context, bin string, options Options) error {
	ports, err := FreeAddresses(ctx, 4)
	if err != nil {
		return err
	}
	w.Sandbox, w.Simulator = "http://"+ports[1], "http://"+ports[3]
	if w.Database = options.Database.Owner; w.Database == "" {
		if err := w.startPostgres(ctx, ports[0]); err != nil {
			return err
		}
	}
	env := append(os.Environ(),
		"YEOLDA_MODE=demo", "YEOLDA_DATABASE_URL="+w.Database, "YEOLDA_COOKIE_SECURE=false", "YEOLDA_RATE_LIMITS=off",
		"YEOLDA_SANDBOX_ADDR="+ports[1], "YEOLDA_SANDBOX_SMTP_ADDR="+ports[2], "YEOLDA_SIM_ADDR="+ports[3],
		"YEOLDA_DATA_DIR="+filepath.Join(w.dir, "data"))
	if options.Branches > 0 {
		env = append(env, "YEOLDA_LOG_LEVEL=warn", "YEOLDA_CUSTOMER_HOLD_TTL="+HoldTTL.String(), "YEOLDA_ADMIN_HOLD_TTL="+HoldTTL.String(), "YEOLDA_DEPOSIT_DUE="+DepositDue.String())
	}
	env = append(env, options.Env...)
	w.bin, w.env = bin, env
	rules, err := w.prepare(ctx)
	if err != nil {
		return err
	}
	for range options.Pool.mosquittos() {
		if err := w.startMosquitto(ctx, options.Root, rules); err != nil {
			return err
		}
	}
	for range options.Pool.replicas() {
		if err := w.addReplica(ctx, env, options, ports[0], ports[1]); err != nil {
			return err
		}
	}
	// Callbacks of the providers reach any running replica, as through a load balancer.
	if w.callbacks, err = faultproxy.New(w.dialReplica); err != nil {
		return err
	}
	outside := append(env, "YEOLDA_HTTP_ADDR="+w.callbacks.Addr())
	if err := w.run(ctx, w.process(Sandbox, answers(w.Sandbox+"/"), bin, outside, Sandbox)); err != nil {
		return err
	}
	for _, r := range w.Replicas {
		if err := w.run(ctx, r.Process); err != nil {
			return err
		}
		if err := r.checkClock(ctx); err != nil {
			return err
		}
	}
	agents := append(env, "YEOLDA_BROKER_URL="+w.AgentBrokers())
	err = w.run(ctx, w.process(Simulator, answers(w.Simulator+"/"), bin, agents, Simulator, "run", "--file", w.files.simulation))
	if err != nil {
		return err
	}
	return w.AwaitAgents(ctx, time.Minute)
}

// process returns a program that is not started yet.
func (w *World) process(name string, ready func() bool, bin string, env []string, program string, args ...string) *Process {
	return &Process{Name: name, ready: ready, log: &prefixed{name: name, out: w.log}, command: func() *exec.Cmd {
		command := exec.Command(filepath.Join(bin, program), args...) //nolint:noctx // Close ends it, in its order
		command.Env, command.Dir = env, w.dir
		return command
	}}
}

// run starts a process that ends with the world.
func (w *World) run(ctx context.Context, p *Process) error {
	w.processes = append(w.processes, p)
	return p.Start(ctx)
}

// addBranches decides which branches there are and writes their files.
func (w *World) addBranches(options Options) error {
	if options.Branches == 0 {
		demo := filepath.Join(options.Root, "deploy/demo")
		w.files.branches, w.files.simulation = filepath.Join(demo, "branches.yaml"), filepath.Join(demo, "sim.yaml")
		w.agents = []string{"gangnam", "hongdae", "jamsil"}
		return nil
	}
	w.Branches = Branches(options.Branches)
	for i, b := range w.Branches {
		if options.Zone != nil {
			w.Branches[i].Zone = options.Zone
		}
		w.agents = append(w.agents, b.Code)
	}
	w.files.branches, w.files.simulation = filepath.Join(w.dir, "branches.yaml"), filepath.Join(w.dir, "sim.yaml")
	if err := os.WriteFile(w.files.branches, []byte(branchFile(w.Branches)), 0o600); err != nil {
		return err
	}
	return os.WriteFile(w.files.simulation, []byte(simulationFile(w.Branches)), 0o600)
}

// Command runs a command of the service's program against the database and returns what it printed.
func (w *World) Command(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(w.bin, Service), args...)
	command.Env, command.Dir = w.env, w.dir
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("yeolda %s: %w\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out), nil
}

// prepare creates the branches and the standby credentials, and returns the broker's access rules.
func (w *World) prepare(ctx context.Context) (brokerRules, error) {
	if _, err := w.Command(ctx, "branch", "apply", "-f", w.files.branches); err != nil {
		return brokerRules{}, err
	}
	for _, b := range w.Branches[:min(2, len(w.Branches))] {
		text, err := w.Command(ctx, "agent", "enroll", b.Code, "--show")
		if err != nil {
			return brokerRules{}, err
		}
		if err := w.addStandby(b.Code, text); err != nil {
			return brokerRules{}, err
		}
	}
	return rulesFrom(ctx, w.Command)
}

// addStandby reads a credential in the format of `yeolda agent enroll --show`.
func (w *World) addStandby(branch, text string) error {
	value := func(name string) string {
		for line := range strings.Lines(text) {
			if value, found := strings.CutPrefix(strings.TrimSpace(line), "YEOLDA_"+name+"="); found {
				return value
			}
		}
		return ""
	}
	c := Credential{branch, value("AGENT_USERNAME"), value("AGENT_PASSWORD")}
	if c.Username == "" || c.Password == "" {
		return fmt.Errorf("no credential in the output of yeolda agent enroll %s", branch)
	}
	w.Standby = append(w.Standby, c)
	w.GrantKeys = nil
	for _, text := range strings.FieldsFunc(value("GRANT_PUBLIC_KEYS"), func(r rune) bool { return r == ',' || r == ' ' }) {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return fmt.Errorf("grant key of %s: %w", branch, err)
		}
		w.GrantKeys = append(w.GrantKeys, key)
	}
	return nil
}

// zones are the time zones of the replicas' hosts: neither is the branches'.
var zones = []string{"UTC", "America/New_York"}

func (w *World) addReplica(ctx context.Context, env []string, options Options, database, providers string) (err error) {
	i := len(w.Replicas)
	ports, err := FreeAddresses(ctx, 4)
	if err != nil {
		return err
	}
	web, metrics := ports[0], ports[1]
	r := &Replica{API: "http://" + web + "/api", Metrics: "http://" + metrics}
	if i < len(options.Clocks) {
		r.Ahead = options.Clocks[i]
	}
	w.Replicas = append(w.Replicas, r)
	if r.Database, err = linkTo(database); err != nil {
		return err
	}
	if r.Providers, err = linkTo(providers); err != nil {
		return err
	}
	service := options.Database.Service
	if service == "" {
		service = strings.Replace(w.Database, "yeolda@"+database, "yeolda_service@"+r.Database.Addr(), 1)
	}
	own := append(append([]string{}, env...), "YEOLDA_HTTP_ADDR="+web, "YEOLDA_METRICS_ADDR="+metrics, "TZ="+zones[i%len(zones)], aheadVariable+"="+r.Ahead.String(),
		"YEOLDA_DATABASE_OWNER_URL="+w.Database, // migrates before the link is under fire; the service has its own role
		"YEOLDA_DATABASE_URL="+service,
		"YEOLDA_SANDBOX_ADDR="+r.Providers.Addr())
	brokers, err := w.linkBrokers(r, ports[2])
	if err != nil {
		return err
	}
	name := fmt.Sprintf("replica-%d", i+1)
	own = append(own, append(brokers, "YEOLDA_DATA_DIR="+filepath.Join(w.dir, name))...)
	r.Process = w.process(name, answers(r.Metrics+"/readyz"), w.bin, own, Service, "serve", "--log-format", "text")
	return nil
}

// linkTo returns a link to an address that can be cut.
func linkTo(address string) (*faultproxy.Proxy, error) {
	return faultproxy.New(func() (net.Conn, error) {
		return net.DialTimeout("tcp", address, 2*time.Second) //nolint:noctx // the link outlives the start
	})
}

// dialReplica connects to a running replica.
func (w *World) dialReplica() (net.Conn, error) {
	var failures []error
	for _, r := range w.Replicas {
		address := strings.TrimSuffix(strings.TrimPrefix(r.API, "http://"), "/api")
		conn, err := net.DialTimeout("tcp", address, time.Second) //nolint:noctx // the link outlives the start
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

func (w *World) startPostgres(ctx context.Context, address string) error {
	database, server, err := newPostgres(w.dir, address, w.log)
	if err != nil {
		return err
	}
	w.Database, w.Postgres = database, server
	return w.run(ctx, w.Postgres)
}

// Query asks the database itself; each row is one line of values between bars.
func (w *World) Query(ctx context.Context, sql string) ([]string, error) {
	programs, err := PostgresPrograms()
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(programs, "psql"), w.Database, "-At", "-v", "ON_ERROR_STOP=1", "-c", sql).Output()
	if err != nil {
		return nil, fmt.Errorf("psql: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

// Credential returns the service's credential at the broker, which an intruder may have stolen. It is empty as long as no
// replica has connected to the embedded broker of another one.
func (b Broker) Credential() (username, password string) {
	if b.overheard != nil {
		return b.overheard.credential()
	}
	return brokerUser, brokerSecret
}

// Restore starts all stopped programs and restores every link.
func (w *World) Restore(ctx context.Context) error {
	for _, r := range w.Replicas {
		for _, l := range r.links() {
			l.Restore()
		}
	}
	for _, p := range w.processes {
		if p.Alive() {
			continue
		}
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	for _, r := range w.Replicas {
		if err := until(ctx, time.Minute, r.Name+" is ready", r.ready); err != nil {
			return err
		}
	}
	return nil
}

// AwaitAgents waits until every branch is online.
func (w *World) AwaitAgents(ctx context.Context, within time.Duration) error {
	return until(ctx, within, "all branches are online", func() bool {
		var list struct {
			Branches []struct {
				Online bool `json:"online"`
			} `json:"branches"`
		}
		if err := getJSON(ctx, w.Simulator+"/sim/branches", &list); err != nil || len(list.Branches) == 0 {
			return false
		}
		for _, b := range list.Branches {
			if !b.Online {
				return false
			}
		}
		return true
	})
}

func until(ctx context.Context, within time.Duration, what string, done func() bool) error {
	limit := time.After(within)
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return fmt.Errorf("not after %s: %s", within, what)
		case <-time.After(50 * time.Millisecond): // other programs: there is no event to wait for
		}
	}
	return nil
}

// Close ends all programs and removes the files.
func (w *World) Close() error {
	var failures []error
	for i := len(w.processes) - 1; i >= 0; i-- {
		failures = append(failures, w.processes[i].Stop())
	}
	if w.callbacks != nil {
		w.callbacks.Close()
	}
	for _, r := range w.Replicas {
		for _, l := range r.links() {
			l.Close()
		}
	}
	if w.logFile != nil {
		failures = append(failures, w.logFile.Close())
	}
	return errors.Join(append(failures, os.RemoveAll(w.dir))...)
}

// prefixed writes the program's name before each line.
type prefixed struct {
	name string
	out  io.Writer
	mu   sync.Mutex
}

// Write implements io.Writer.
func (p *prefixed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Fprintf(p.out, "[%s] %s", p.name, line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// Ports that systems assign to connections only exceptionally: Linux begins at 32768.
const firstPort, lastPort = 12000, 32000

// given are the ports that this process has used: a program of another stack may be stopped for a while, and needs its port again.
var given sync.Map

// FreeAddresses returns n different addresses on loopback on which no process listens. A port that the system chose could be
// the local port of another program's connection by the time it is used.
func FreeAddresses(ctx context.Context, n int) ([]string, error) {
	addresses := make([]string, 0, n)
	for len(addresses) < n {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // no secret
		if _, again := given.LoadOrStore(port, true); again {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at the end, so that they differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

var control = &http.Client{Timeout: 30 * time.Second}
