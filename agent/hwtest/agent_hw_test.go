//go:build hw

package hwtest

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

const branch = "gangnam"

// process is the agent's program as its service runs it.
type process struct {
	*exec.Cmd
	t       *testing.T
	manager *net.UnixConn // receives what systemd would
	status  protocol.Status
}

// start runs the program against a broker and waits until it is online.
func start(t *testing.T, b *brokertest.Broker) *process {
	t.Helper()
	return startWith(t, b, "")
}

// startWith runs the program with additional settings.
func startWith(t *testing.T, b *brokertest.Broker, more string) *process {
	t.Helper()
	return startProgram(t, b, "/bin/yeolda-agent", fmt.Sprintf(settings, b.Addr)+more)
}

// startProgram runs a version of the program with settings.
func startProgram(t *testing.T, b *brokertest.Broker, program, settings string) *process {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "settings.toml"), settings)
	write(t, filepath.Join(dir, "credentials"), "YEOLDA_BRANCH="+branch+"\nYEOLDA_AGENT_USERNAME=agent-"+branch+
		"\nYEOLDA_AGENT_PASSWORD="+brokertest.Password+"\nYEOLDA_GRANT_PUBLIC_KEYS="+base64.StdEncoding.EncodeToString(brokertest.PublicKeys()[0])+"\n")
	long, err := os.ReadFile("/testdata/long.json")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "/tmp/long.json", string(long))

	socket := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Close() })
	p := &process{Cmd: exec.Command(program, "run", "--settings", filepath.Join(dir, "settings.toml"),
		"--credentials", filepath.Join(dir, "credentials")), t: t, manager: manager}
	p.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket)
	p.Stdout, p.Stderr = t.Output(), t.Output()
	began := time.Now()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	for p.status.State != protocol.Online || p.status.StartedAt.Before(began) { // a program that ended before may have sent one that waits
		p.status = brokertest.Await[protocol.Status](b)
	}
	return p
}

// end signals the program and waits until it has ended, in whatever way.
func (p *process) end(signal syscall.Signal) {
	if p.ProcessState == nil {
		_ = p.Process.Signal(signal)
		_ = p.Wait() // a killed program returns an error
	}
}

// await polls for a condition without an event.
func await(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, within)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// level is the level that the agent drives, or the pull if it drives none.
func level(t *testing.T, line int) int {
	t.Helper()
	value, err := chip.Level(line)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func pull(t *testing.T, line, value int) {
	t.Helper()
	if err := chip.SetPull(line, value); err != nil {
		t.Fatal(err)
	}
}

// grant answers a claim as the cloud does.
func grant(t *testing.T, claim protocol.Claim, pulse time.Duration, doors ...string) protocol.Grant {
	t.Helper()
	g := protocol.Grant{Branch: branch, RequestID: claim.RequestID, Nonce: claim.Nonce, Doors: doors, PulseMs: uint32(pulse / time.Millisecond)}
	return g.Sign(brokertest.Key)
}

// unlock runs the whole exchange for a door and returns the result and the grant.
func unlock(t *testing.T, b *brokertest.Broker, n int, pulse time.Duration, door string) (protocol.Result, protocol.Grant) {
	t.Helper()
	b.Send(branch, protocol.Ask{RequestID: request(n), Doors: []string{door}})
	g := grant(t, brokertest.Await[protocol.Claim](b), pulse, door)
	b.Send(branch, g)
	return brokertest.Await[protocol.Result](b), g
}

func request(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
