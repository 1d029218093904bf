package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Names of the programs of a stack.
const (
	Sandbox   = "yeolda-sandbox"
	Service   = "yeolda"
	Simulator = "yeolda-sim"
)

// StackOptions describe how a stack differs from the demo.
type StackOptions struct {
	Root string            // the checkout
	Bin  string            // directory of the programs that Build compiled
	Dir  string            // directory for data, created by the caller
	Env  map[string]string // settings beside the addresses
	Log  io.Writer         // receives the output of all programs
	// SimArgs replaces the simulator's arguments, for example fleet --agents 50. Branches are the branch files to apply;
	// nil means the demo's.
	SimArgs  []string
	Branches []string
	// Template is a data directory made by MakeTemplate, with which the stack begins; empty: an empty database.
	Template string
	// NoSimulator starts no simulator.
	NoSimulator bool
	// Replicas is the number of services beside the first one. They share the database of Env. Their embedded brokers form a pool,
	// unless there are Mosquittos.
	Replicas int
	// Mosquittos is the number of brokers that form the pool, with deploy/mosquitto/mosquitto.conf; Agents can log in there.
	Mosquittos int
	Agents     []Credential
}

// Stack is the system as `make run` starts it: sandbox, one replica with a private PostgreSQL and the embedded broker, and
// the simulator, on free ports and with a data directory of their own.
type Stack struct {
	API       string // http://…/api
	Pages     string // http://…
	SandboxAt string
	SimAt     string
	MetricsAt string
	MQTTAt    string // host:port
	Replicas  []StackReplica
	Brokers   []Broker // Mosquittos

	options   StackOptions
	env       []string
	mu        sync.Mutex
	processes map[string]*Process
}

// StackReplica is a service beside the first one.
type StackReplica struct {
	Name   string // of its process
	API    string // http://…/api
	MQTTAt string // host:port

	env []string
}

// Dir is the directory of the stack's data.
func (s *Stack) Dir() string { return s.options.Dir }

// Build compiles the programs of the checkout at root into dir. flags are those of go build.
func Build(ctx context.Context, root, dir string, flags ...string) error {
	args := append(append([]string{"build"}, flags...), "-o", dir+string(filepath.Separator), "./cloud/cmd/...", "./firmware-sim/cmd/yeolda-sim")
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}

// MakeTemplate makes a data directory whose database is migrated and empty. Copying it takes a fraction of the time.
func MakeTemplate(ctx context.Context, bin, dir string) error {
	s := PrepareStack(StackOptions{Bin: bin, Env: map[string]string{"YEOLDA_MODE": "demo", "YEOLDA_DATA_DIR": dir}})
	_, err := s.Command(ctx, "agent", "list")
	return err
}

func (s *Stack) copyTemplate(ctx context.Context) error {
	if s.options.Template == "" {
		return nil
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", s.options.Template, filepath.Join(s.options.Dir, "data")).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the template of the data: %w\n%s", err, out)
	}
	return nil
}

// PrepareStack returns a stack without running programs, for commands that run before it starts.
func PrepareStack(options StackOptions) *Stack {
	s := &Stack{options: options, processes: map[string]*Process{}, env: os.Environ()}
	s.addSettings()
	return s
}

func (s *Stack) addSettings() {
	for name, value := range s.options.Env {
		s.env = append(s.env, name+"="+value)
	}
}

// StartStack starts a stack and returns when every part of it is ready.
func StartStack(ctx context.Context, options StackOptions) (*Stack, error) {
	s := &Stack{options: options, processes: map[string]*Process{}}
	addresses, err := FreeAddresses(ctx, 6)
	if err != nil {
		return nil, err
	}
	s.API, s.Pages = "http://"+addresses[0]+"/api", "http://"+addresses[0]
	s.SandboxAt, s.SimAt, s.MetricsAt = "http://"+addresses[2], "http://"+addresses[3], "http://"+addresses[4]
	s.MQTTAt = addresses[1]
	s.env = append(os.Environ(),
		"YEOLDA_MODE=demo", "YEOLDA_HTTP_ADDR="+addresses[0], "YEOLDA_MQTT_ADDR="+addresses[1], "YEOLDA_SANDBOX_ADDR="+addresses[2],
		"YEOLDA_SIM_ADDR="+addresses[3], "YEOLDA_METRICS_ADDR="+addresses[4], "YEOLDA_SANDBOX_SMTP_ADDR="+addresses[5],
		"YEOLDA_DATA_DIR="+filepath.Join(options.Dir, "data"), "YEOLDA_COOKIE_SECURE=false",
		"YEOLDA_STEP_UP_AFTER=0s", // sessions of long runs
		"YEOLDA_STAGE_ORIGIN="+s.SimAt, "YEOLDA_STAGE_PACE=0s",
	)
	s.addSettings()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) addReplicas(ctx context.Context) error {
	if s.options.Replicas == 0 {
		return nil
	}
	pooled := func(address string) []string {
		if len(s.Brokers) > 0 {
			return nil
		}
		return []string{"YEOLDA_BROKER_PEER_URL=mqtt://" + address}
	}
	for n := range s.options.Replicas {
		addresses, err := FreeAddresses(ctx, 3)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%d", Service, n+2)
		s.Replicas = append(s.Replicas, StackReplica{Name: name, API: "http://" + addresses[0] + "/api", MQTTAt: addresses[1], env: slices.Concat(s.env, pooled(addresses[1]), []string{
			"YEOLDA_HTTP_ADDR=" + addresses[0], "YEOLDA_MQTT_ADDR=" + addresses[1], "YEOLDA_METRICS_ADDR=" + addresses[2],
			"YEOLDA_DATA_DIR=" + filepath.Join(s.options.Dir, name)})})
	}
	s.env = append(s.env, pooled(s.MQTTAt)...)
	return nil
}

// startBrokers starts the Mosquittos.
func (s *Stack) startBrokers(ctx context.Context) error {
	if s.options.Mosquittos == 0 {
		return nil
	}
	rules, err := rulesFrom(ctx, s.Command)
	if err != nil {
		return err
	}
	var urls []string
	for n := range s.options.Mosquittos {
		b, err := newMosquitto(ctx, s.options.Root, filepath.Join(s.options.Dir, fmt.Sprintf("mosquitto-%d", n+1)), rules, s.options.Agents, s.options.Log)
		if err != nil {
			return err
		}
		s.Brokers = append(s.Brokers, b)
		urls = append(urls, serviceURL(b.Cloud))
		if err := b.Start(ctx); err != nil {
			return err
		}
	}
	s.env = append(s.env, "YEOLDA_BROKER_URL="+strings.Join(urls, ","))
	return nil
}

func (s *Stack) start(ctx context.Context) error {
	if err := s.copyTemplate(ctx); err != nil {
		return err
	}
	if err := s.Run(ctx, Sandbox); err != nil {
		return err
	}
	branches := s.options.Branches
	if branches == nil {
		branches = []string{filepath.Join(s.options.Root, "deploy/demo/branches.yaml")}
	}
	for _, file := range branches {
		if _, err := s.Command(ctx, "branch", "apply", "-f", file); err != nil {
			return err
		}
	}
	if err := s.startBrokers(ctx); err != nil {
		return err
	}
	if err := s.addReplicas(ctx); err != nil {
		return err
	}
	if err := s.Run(ctx, Service, "serve"); err != nil {
		return err
	}
	for _, r := range s.Replicas {
		if err := s.RunReplica(ctx, r); err != nil {
			return err
		}
	}
	if s.options.NoSimulator {
		return nil
	}
	return s.Run(ctx, Simulator, s.options.SimArgs...)
}

// Command runs a command of the service's program against the stack's database and returns its output.
func (s *Stack) Command(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(s.options.Bin, Service), args...)
	command.Env = s.env
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("yeolda %v: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// Run starts a program, again if it has ended, and waits until it is ready.
func (s *Stack) Run(ctx context.Context, name string, args ...string) error {
	return s.run(ctx, name, name, s.env, args...)
}

// RunReplica starts a replica, again if it has ended, and waits until it is ready.
func (s *Stack) RunReplica(ctx context.Context, r StackReplica) error {
	return s.run(ctx, r.Name, Service, r.env, "serve")
}

func (s *Stack) run(ctx context.Context, name, program string, env []string, args ...string) error {
	file := filepath.Join(s.options.Dir, name+".ready")
	_ = os.Remove(file) // an earlier run may have left it
	p := &Process{
		Name: name, log: s.options.Log,
		command: func() *exec.Cmd {
			command := exec.Command(filepath.Join(s.options.Bin, program), append(args, "--ready-file", file)...) //nolint:noctx // Stop ends it
			command.Env = env
			return command
		},
		ready: func() bool {
			content, err := os.ReadFile(file)
			return err == nil && len(content) > 0
		},
	}
	s.mu.Lock()
	s.processes[name] = p
	s.mu.Unlock()
	return p.start(ctx)
}

// process returns a program of the stack, nil if it was never started.
func (s *Stack) process(name string) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[name]
}

// Signal sends a signal to a program and waits until it has ended.
func (s *Stack) Signal(name string, signal syscall.Signal) error {
	p := s.process(name)
	if p == nil {
		return fmt.Errorf("%s was never started", name)
	}
	return p.Signal(signal)
}

// PID returns the process id of a program.
func (s *Stack) PID(name string) int { return s.process(name).PID() }

// Stop ends every program, the simulator first. It returns an error if a program had to be killed.
func (s *Stack) Stop() error {
	var failures []error
	names := []string{Simulator}
	for _, r := range s.Replicas {
		names = append(names, r.Name)
	}
	for _, name := range append(names, Service, Sandbox) {
		if p := s.process(name); p != nil {
			failures = append(failures, p.Stop())
		}
	}
	for _, b := range s.Brokers {
		failures = append(failures, b.Stop())
	}
	return errors.Join(failures...)
}
