package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yeolda/yeolda/agent"
)

// TestHealthIsWrittenAfterAFailure: the disk was full when the agent connected, as while dpkg unpacks an update. The trial of the update must
// not read for an hour that the agent is not connected.
func TestHealthIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	h := health{file: filepath.Join(dir, "health")}
	if err := h.write(agent.Health{Connected: true}); err == nil {
		t.Fatal("written without its folder")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.write(agent.Health{Connected: true}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(h.file); err != nil || string(text) != "connected=yes\nfailed=0\n" {
		t.Errorf("got %q, %v", text, err)
	}
}
