// Package stack runs the whole system as real processes: sandbox, service and simulator, on free ports and a data
// directory of their own. The end-to-end tests and the benchmark look at it from outside, as customers and operators do.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Names of the programs of a stack.
const (
	Sandbox   = "yeolda-sandbox"
	Service   = "yeolda"
	Simulator = "yeolda-sim"
)

// Options say how a stack differs from the demo.
type Options struct {
	Root string            // the checkout
	Bin  string            // where Build has put the programs
	Dir  string            // for data, made by the caller
	Env  map[string]string // settings beside the addresses
	Log  io.Writer         // what the programs say
	// SimArgs replaces the simulator's arguments, such as fleet --agents 50. Branches are the branch files to apply;
	// nil means the demo's.
	SimArgs  []string
	Branches []string
}

// Stack is a running system.
type Stack struct {
	API       string // http://…/api
	Pages     string // http://…
	SandboxAt string
	SimAt     string
	MetricsAt string

	options   Options
	env       []string
	mu        sync.Mutex
	processes map[string]*process
}

type process struct {
	command *exec.Cmd
	done    chan struct{} // closed when it has ended
	err     error
}

// Build compiles the programs of the checkout at root into dir.
func Build(ctx context.Context, root, dir string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "./cloud/cmd/...", "./firmware-sim/cmd/yeolda-sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("stack: build: %w\n%s", err, out)
	}
	return nil
}

// Prepare returns a stack of which nothing runs, for commands that come before.
func Prepare(options Options) *Stack {
	s := &Stack{options: options, processes: map[string]*process{}, env: os.Environ()}
	s.addSettings()
	return s
}

func (s *Stack) addSettings() {
	for name, value := range s.options.Env {
		s.env = append(s.env, name+"="+value)
	}
}

// Start brings up a stack and returns when every part of it is ready.
func Start(ctx context.Context, options Options) (*Stack, error) {
	s := &Stack{options: options, processes: map[string]*process{}}
	addresses, err := freeAddresses(6)
	if err != nil {
		return nil, err
	}
	s.API, s.Pages = "http://"+addresses[0]+"/api", "http://"+addresses[0]
	s.SandboxAt, s.SimAt, s.MetricsAt = "http://"+addresses[2], "http://"+addresses[3], "http://"+addresses[4]
	s.env = append(os.Environ(),
		"YEOLDA_HTTP_ADDR="+addresses[0], "YEOLDA_MQTT_ADDR="+addresses[1], "YEOLDA_SANDBOX_ADDR="+addresses[2],
		"YEOLDA_SIM_ADDR="+addresses[3], "YEOLDA_METRICS_ADDR="+addresses[4], "YEOLDA_SANDBOX_SMTP_ADDR="+addresses[5],
		"YEOLDA_DATA_DIR="+filepath.Join(options.Dir, "data"), "YEOLDA_COOKIE_SECURE=false",
	)
	s.addSettings()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
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
	return errors.Join(s.Run(ctx, Service, "serve"), s.Run(ctx, Simulator, s.options.SimArgs...))
}

// Command runs a command of the service's program against the stack's database and returns what it printed.
func (s *Stack) Command(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(s.options.Bin, Service), args...)
	command.Env = s.env
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("stack: yeolda %v: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// Run starts a program, again if it has ended, and waits until it is ready.
func (s *Stack) Run(ctx context.Context, name string, args ...string) error {
	ready := filepath.Join(s.options.Dir, name+".ready")
	_ = os.Remove(ready) // of an earlier run, if any
	command := exec.Command(filepath.Join(s.options.Bin, name), append(args, "--ready-file", ready)...)
	command.Env = s.env
	command.Stdout, command.Stderr = s.options.Log, s.options.Log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("stack: %s: %w", name, err)
	}
	p := &process{command: command, done: make(chan struct{})}
	go func() {
		p.err = command.Wait()
		close(p.done)
	}()
	s.mu.Lock()
	s.processes[name] = p
	s.mu.Unlock()
	for {
		if content, err := os.ReadFile(ready); err == nil && len(content) > 0 {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("stack: %s ended before it was ready: %w", name, p.err)
		case <-ctx.Done():
			return fmt.Errorf("stack: %s is not ready: %w", name, ctx.Err())
		case <-time.After(20 * time.Millisecond): // another program's file: there is no event to wait for
		}
	}
}

// Signal sends a signal to a program and waits until it has ended.
func (s *Stack) Signal(name string, signal syscall.Signal) error {
	s.mu.Lock()
	p := s.processes[name]
	s.mu.Unlock()
	if p == nil {
		return fmt.Errorf("stack: %s was never started", name)
	}
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// PID returns the process id of a program.
func (s *Stack) PID(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[name].command.Process.Pid
}

// stopWithin bounds how long programs may take to end by themselves.
const stopWithin = 30 * time.Second

// Stop ends everything, the simulator first. It returns an error if a program had to be killed or complained.
func (s *Stack) Stop() error {
	var failures []error
	for _, name := range []string{Simulator, Service, Sandbox} {
		s.mu.Lock()
		p := s.processes[name]
		s.mu.Unlock()
		if p == nil {
			continue
		}
		_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended already
		select {
		case <-p.done:
		case <-time.After(stopWithin):
			_ = p.command.Process.Kill()
			<-p.done
			failures = append(failures, fmt.Errorf("stack: %s did not stop", name))
		}
	}
	return errors.Join(failures...)
}

// freeAddresses returns addresses on loopback that nobody listens on.
func freeAddresses(n int) ([]string, error) {
	addresses := make([]string, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at once, so that they differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
