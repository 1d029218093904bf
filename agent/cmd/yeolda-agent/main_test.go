package main

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// TestRun starts the program as systemd does, with the files that its installer wrote.
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
	c := runCommand{files: files{Settings: filepath.Join(dir, "settings.toml"), Credentials: filepath.Join(dir, "credentials")}}
	write(t, c.Settings, "broker = 'mqtt://"+b.Addr+"'\n[[sensor]]\nlocation = '로비'\nkind = 'sht4x'\nbus = 'none'\n")
	write(t, c.Credentials, "YEOLDA_BRANCH=gangnam\nYEOLDA_AGENT_USERNAME=agent-gangnam\nYEOLDA_AGENT_PASSWORD="+brokertest.Password+
		"\nYEOLDA_GRANT_PUBLIC_KEYS="+base64.StdEncoding.EncodeToString(brokertest.PublicKeys()[0])+"\n")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, slog.New(slog.DiscardHandler)) }()
	if s := brokertest.Await[protocol.Status](b); s.State != protocol.Online || len(s.Inventory.Sensors) != 1 || s.AgentVersion == "" {
		t.Errorf("status %+v", s)
	}
	if state := next(); state != "READY=1" {
		t.Errorf("first told %q", state)
	}
	if state := next(); state != "WATCHDOG=1" {
		t.Errorf("then told %q", state)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for state := next(); state != "STOPPING=1"; state = next() {
		if state != "WATCHDOG=1" {
			t.Errorf("told %q", state)
		}
	}
}

func TestRunWithoutCredentials(t *testing.T) {
	dir := t.TempDir()
	c := runCommand{files: files{Settings: filepath.Join(dir, "settings.toml"), Credentials: filepath.Join(dir, "credentials")}}
	if err := c.Run(t.Context(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("ran without settings")
	}
	write(t, c.Settings, "broker = 'mqtt://127.0.0.1'\n")
	if err := c.Run(t.Context(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("ran without credentials")
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
