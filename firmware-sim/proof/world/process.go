package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Process is a program that can be killed and restarted.
type Process struct {
	Name    string
	command func() *exec.Cmd
	ready   func() bool
	log     io.Writer

	mu      sync.Mutex
	running *exec.Cmd
	done    chan struct{} // closed when it has ended
}

// startTimeout bounds the time until a program is ready.
const startTimeout = 60 * time.Second

// errEnded is returned when a program ends before it is ready.
var errEnded = errors.New("ended before it was ready")

// Start starts the program and waits until it is ready. Like a service manager, it retries for a while if the program
// ends early: PostgreSQL does not start while a child process of a killed server still runs.
func (p *Process) Start(ctx context.Context) error {
	const retries = 20
	for n := 0; ; n++ {
		err := p.start(ctx)
		if !errors.Is(err, errEnded) || n == retries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond): // RestartSec
		}
	}
}

func (p *Process) start(ctx context.Context) error {
	p.mu.Lock()
	command, done := p.command(), make(chan struct{})
	command.Stdout, command.Stderr = p.log, p.log
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true // Ctrl-C must reach the parent only
	dieWithParent(command.SysProcAttr)
	err := command.Start()
	if err == nil {
		p.running, p.done = command, done
	}
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	go func() {
		_ = command.Wait() // its log shows how it ended
		close(done)
	}()
	limit := time.After(startTimeout)
	for !p.ready() {
		select {
		case <-done:
			return fmt.Errorf("%s %w: %v", p.Name, errEnded, command.ProcessState)
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return fmt.Errorf("%s is not ready after %s", p.Name, startTimeout)
		case <-time.After(20 * time.Millisecond): // another program: there is no event to wait for
		}
	}
	return nil
}

// Signal sends a signal and waits until the program has ended.
func (p *Process) Signal(signal syscall.Signal) error { return p.end(signal) }

// Kill ends the program as a power cut does.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL) }

// stopTimeout bounds the time until a program ends after SIGTERM.
const stopTimeout = 20 * time.Second

// Stop sends SIGTERM, and kills the program if it does not end.
func (p *Process) Stop() error {
	p.mu.Lock()
	running, done := p.running, p.done
	p.mu.Unlock()
	if running == nil {
		return nil
	}
	if err := running.Process.Signal(syscall.SIGTERM); err != nil {
		return p.end(syscall.SIGKILL)
	}
	select {
	case <-done:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("%s did not stop", p.Name), p.end(syscall.SIGKILL))
	}
}

func (p *Process) end(signal syscall.Signal) error {
	p.mu.Lock()
	running, done := p.running, p.done
	p.mu.Unlock()
	if running == nil {
		return nil
	}
	if err := running.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	<-done
	return nil
}

// PID returns the process id.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running.Process.Pid
}

// Alive reports whether the program is running.
func (p *Process) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// answers reports whether an address answers 200.
func answers(address string) func() bool {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return func() bool {
		response, err := client.Get(address) //nolint:noctx // the client has a time-out of a second
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
}

// listens reports whether an address accepts connections.
func listens(address string) func() bool {
	return func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second) //nolint:noctx // it takes a second at most
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
}
