package main

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// TestEmptyVariables checks that an empty variable leaves the default, as in the other programs: an agent that does not start
// opens no door.
func TestEmptyVariables(t *testing.T) {
	t.Setenv("YEOLDA_LOG_LEVEL", "")
	t.Setenv("YEOLDA_AGENT_SETTINGS", "")
	var c cli
	if _, err := parser(&c).Parse(nil); err != nil || c.LogLevel != slog.LevelInfo || c.Run.Settings != "/etc/yeolda-agent/settings.toml" {
		t.Errorf("got %+v, %v", c.Run, err)
	}
}

// TestRun starts the program as systemd does, with the files of the installation.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Close() }()
	t.Setenv("NOTIFY_SOCKET", socket)
	next := func() string {
		b := make([]byte, 100)
		_ = manager.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}

	b := brokertest.Start(t, "127.0.0.1:0")
	c := testRun(t, dir, b, "[[sensor]]\nlocation = '로비'\nkind = 'sht4x'\nbus = 'none'\n")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, slog.New(slog.DiscardHandler)) }()
	if s := brokertest.Await[protocol.Status](b); s.State != protocol.Online || len(s.Inventory.Sensors) != 1 || s.AgentVersion == "" {
		t.Errorf("got status %+v", s)
	}
	if state := next(); state != "READY=1" {
		t.Errorf("first notification: got %q", state)
	}
	if state := next(); state != "WATCHDOG=1" {
		t.Errorf("second notification: got %q", state)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for state := next(); state != "STOPPING=1"; state = next() {
		if state != "WATCHDOG=1" {
			t.Errorf("got notification %q", state)
		}
	}
}

// TestEnrollKeepsToken checks that no token is sent, and spent, if the credentials cannot be stored.
func TestEnrollKeepsToken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("got a request for %s", r.URL.Path) }))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	c := enrollCommand{Server: server.URL, Token: "secret.fingerprint", File: filepath.Join(file, "credentials")}
	if err := c.Run(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "token is not used") {
		t.Errorf("got %v, want an error that the token is not used", err)
	}
}

func TestRunWithoutCredentials(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	dir := t.TempDir()
	c := runCommand{files: files{Settings: filepath.Join(dir, "settings.toml"), Credentials: filepath.Join(dir, "credentials")}}
	write(t, c.Settings, "broker = 'mqtt://127.0.0.1'\n")
	if err := c.Run(t.Context(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("got no error without credentials")
	}
}

// TestWaitForCredentials starts the program under systemd without credentials. It must report that it is ready, because its
// locks are idle, and connect as soon as the machine is enrolled, without a restart.
func TestWaitForCredentials(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Close() }()
	t.Setenv("NOTIFY_SOCKET", socket)
	b := brokertest.Start(t, "127.0.0.1:0")
	c := testRun(t, dir, b, "")
	credentials, err := os.ReadFile(c.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.Credentials); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, slog.New(slog.DiscardHandler)) }()
	state := make([]byte, 100)
	_ = manager.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := manager.Read(state); err != nil || string(state[:n]) != "READY=1" {
		t.Errorf("got notification %q, %v", state[:n], err)
	}
	write(t, c.Credentials, string(credentials))
	brokertest.Await[protocol.Status](b)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestInvalidSettings starts the program with a mistake in its settings, after it has run without one. The last valid settings
// stay in use, and the status reports the mistake.
func TestInvalidSettings(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	b := brokertest.Start(t, "127.0.0.1:0")
	dir := t.TempDir()
	run := func(settings string, until func(protocol.Status) bool) {
		t.Helper()
		c := testRun(t, dir, b, settings)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, slog.New(slog.DiscardHandler)) }()
		for s := brokertest.Await[protocol.Status](b); s.State != protocol.Online || !until(s); {
			s = brokertest.Await[protocol.Status](b)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	const door = "[[door]]\ndevice = 'room_1'\nrelay = { chip = 'none', line = 'A0' }\n"
	saved := filepath.Join(dir, "settings.toml")
	run(door, func(protocol.Status) bool {
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(saved); err == nil {
				return true
			}
		}
		t.Fatal("the settings were not saved within 10 seconds")
		return false
	})
	if text, err := os.ReadFile(filepath.Join(dir, "health")); err != nil || !strings.Contains(string(text), "connected=yes\nfailed=") {
		t.Errorf("got health %q, %v", text, err)
	}
	run(strings.Replace(door, "device", "devcie", 1)+"[[sensor]]\nlocation = '로비'\nkind = 'sht4x'\nbus = '1'\n", func(s protocol.Status) bool {
		reported := slices.ContainsFunc(s.SelfTest, func(test protocol.SelfTest) bool {
			return test.Name == "settings door 1" && !test.OK && strings.Contains(test.Detail, "devcie")
		})
		return reported && len(s.Inventory.Doors) == 1 && len(s.Inventory.Sensors) == 1
	})
}

// TestCheck checks that the command reports the mistakes of all files.
func TestCheck(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	c := checkCommand{testRun(t, t.TempDir(), b, "").files}
	if err := c.Run(); err != nil {
		t.Error(err)
	}
	write(t, c.Settings, "broker = 'http://x'\n[[sensor]]\nplace = 'x'\n[[air_conditioner]]\nname = 'x'\ncodes = 'none'\n")
	err := c.Run()
	for _, want := range []string{"place", "scheme", "codes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q to be reported", err, want)
		}
	}
}

// TestCertificateTime checks that the time for certificates is never before the newest file of the agent: a Pi without a clock
// battery starts in the past.
func TestCertificateTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := files{Settings: filepath.Join(dir, "none"), State: dir}
	if got := newCertificateClock(f).now(); time.Since(got) > time.Minute || time.Since(got) < 0 {
		t.Errorf("got %v, want the present", got)
	}
	future := time.Now().Add(30 * 24 * time.Hour)
	write(t, filepath.Join(dir, "health"), "")
	if err := os.Chtimes(filepath.Join(dir, "health"), future, future); err != nil {
		t.Fatal(err)
	}
	if got := newCertificateClock(f).now(); got.Before(future.Add(-time.Second)) {
		t.Errorf("got %v, want the time of the newest file", got)
	}
	synctest.Test(t, func(t *testing.T) { // starts in the past, as a Pi without a network
		now := newCertificateClock(f).now
		if got := now(); got.Before(future.Add(-time.Second)) {
			t.Errorf("got %v, want the time of the newest file", got)
		}
		time.Sleep(time.Minute)
		if got := now(); !got.Equal(time.Now()) {
			t.Errorf("got %v, want the clock every other minute", got)
		}
	})
}

func TestMappings(t *testing.T) {
	t.Parallel()
	const maps = `00400000-00a00000 r-xp 00000000 fe:01 1234 /usr/bin/yeolda-agent
00a00000-00f00000 r--p 00600000 fe:01 1234 /usr/bin/yeolda-agent
c000000000-c000400000 rw-p 00000000 00:00 0
7f0000000000-7f0000021000 ---p 00000000 fe:01 1234 /usr/bin/yeolda-agent
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
`
	got := mappings(maps, "/usr/bin/yeolda-agent")
	if want := [][2]uintptr{{0x400000, 0xa00000}, {0xa00000, 0xf00000}}; !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// testRun writes the files of an enrolled machine.
func testRun(t *testing.T, dir string, b *brokertest.Broker, settings string) runCommand {
	t.Helper()
	c := runCommand{files: files{Settings: filepath.Join(dir, "etc-settings.toml"), Credentials: filepath.Join(dir, "credentials"), State: dir}}
	write(t, c.Settings, "broker = 'mqtt://"+b.Addr+"'\n"+settings)
	write(t, c.Credentials, "YEOLDA_BRANCH=gangnam\nYEOLDA_AGENT_USERNAME=agent-gangnam\nYEOLDA_AGENT_PASSWORD="+brokertest.Password+
		"\nYEOLDA_GRANT_PUBLIC_KEYS="+base64.StdEncoding.EncodeToString(brokertest.PublicKeys()[0])+"\n")
	return c
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
