package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProofCommand checks the rules, and verifies the signed proof without a database.
func TestProofCommand(t *testing.T) {
	s := newShell(t).withDatabase()
	t.Setenv("YEOLDA_MODE", "demo")
	s.ok("branch", "apply", "-f", demoFile)
	if out := s.ok("proof", "--since", "24h"); !strings.Contains(out, "0 violations") || !strings.Contains(out, "M2") {
		t.Errorf("got %s", out)
	}
	file := filepath.Join(t.TempDir(), "proof.json")
	if err := os.WriteFile(file, []byte(s.ok("proof", "--sign")), 0o600); err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(s.ok("proof", "key"))
	t.Setenv("YEOLDA_DATABASE_URL", "postgres://nowhere.invalid/x")
	if out := s.ok("proof", "verify", file, "--key", key); !strings.Contains(out, "the signature is valid: 0 violations") {
		t.Errorf("got %s", out)
	}
	other := strings.Repeat("A", 43) + "="
	if _, errOut, code := s.run("", "proof", "verify", file, "--key", other); code != 1 || !strings.Contains(errOut, "does not match") {
		t.Errorf("another key: exit code %d, %s", code, errOut)
	}
}
