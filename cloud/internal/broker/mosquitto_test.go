package broker

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// mosquittoServer is a Mosquitto without access rules.
type mosquittoServer struct {
	t       testing.TB
	addr    string
	program string
	file    string
	command *exec.Cmd
}

// newMosquitto starts a Mosquitto that ends with the test. ok is false if Mosquitto is not installed.
func newMosquitto(t testing.TB) (m *mosquittoServer, ok bool) {
	t.Helper()
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		program = "/usr/sbin/mosquitto"
	}
	if _, err := os.Stat(program); err != nil {
		return nil, false
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m = &mosquittoServer{t: t, addr: l.Addr().String(), program: program, file: filepath.Join(t.TempDir(), "mosquitto.conf")}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(m.addr)
	// Without set_tcp_nodelay, each answer is delayed by 40 ms until the previous one is acknowledged.
	const settings = "listener %s 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nmax_inflight_messages 2000\nmax_queued_messages 100000\npersistence false\nlog_type none\n"
	if err := os.WriteFile(m.file, fmt.Appendf(nil, settings, port), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start()
	t.Cleanup(m.kill)
	return m, true
}

// start starts it and waits until it accepts connections.
func (m *mosquittoServer) start() {
	m.t.Helper()
	m.command = exec.Command(m.program, "-c", m.file)
	if err := m.command.Start(); err != nil {
		m.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", m.addr)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatal(err)
		}
	}
}

// kill ends it as by kill -9.
func (m *mosquittoServer) kill() {
	_ = m.command.Process.Kill() // it may have ended
	_ = m.command.Wait()
}
