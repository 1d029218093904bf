package main

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// TestServeRejectsKeysOfAnotherInstallation starts the service with another encryption key than the door PINs were sealed with, before
// and after the operator confirms that their key is lost.
func TestServeRejectsKeysOfAnotherInstallation(t *testing.T) {
	s := newShell(t).withDatabase()
	own, other := seal.NewKey(), seal.NewKey()
	s.Setenv("YEOLDA_ENCRYPTION_KEY", own)
	s.ok("branch", "apply", "-f", demoFile)

	s.Setenv("YEOLDA_ENCRYPTION_KEY", other)
	_, errOut, code := s.run("", "serve")
	if code != exitUsage || !strings.HasPrefix(errOut, "yeolda: YEOLDA_ENCRYPTION_KEY: this database was written with another encryption key") {
		t.Errorf("serve with another key: exit code %d, want %d and the setting: %s", code, exitUsage, errOut)
	}
	if out, _, _ := s.run("", "doctor", "--offline"); !strings.Contains(out, "FAIL  secrets      YEOLDA_ENCRYPTION_KEY") {
		t.Errorf("doctor with another key: %s", out)
	}
	if _, errOut, code := s.run("", "adopt"); code != exitFailed || !strings.Contains(errOut, "--lost") {
		t.Errorf("adopt without --lost: exit code %d, want %d: %s", code, exitFailed, errOut)
	}
	s.ok("adopt", "--lost")
	if out := s.ok("adopt", "--lost"); !strings.Contains(out, "already") {
		t.Errorf("adopt again: %s", out)
	}
	if out, _, _ := s.run("", "doctor", "--offline"); strings.Contains(out, "another encryption key") {
		t.Errorf("doctor after adopt: %s", out)
	}
}

// TestResealCoversTheInstallation removes the old key after a rotation.
func TestResealCoversTheInstallation(t *testing.T) {
	s := newShell(t).withDatabase()
	own, fresh := seal.NewKey(), seal.NewKey()
	s.Setenv("YEOLDA_ENCRYPTION_KEY", own)
	s.ok("adopt", "--lost")
	s.Setenv("YEOLDA_ENCRYPTION_KEY", fresh+","+own)
	if out := s.ok("reseal"); !strings.Contains(out, "installation.sealed: 1 sealed with the new key") {
		t.Errorf("reseal: %s", out)
	}
	s.Setenv("YEOLDA_ENCRYPTION_KEY", fresh)
	if out, _, _ := s.run("", "doctor", "--offline"); strings.Contains(out, "another encryption key") {
		t.Errorf("doctor with the new key alone: %s", out)
	}
	conn, err := pgx.Connect(t.Context(), os.Getenv("YEOLDA_DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var rows int
	if err := conn.QueryRow(t.Context(), `select count(*) from installation`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d records (%v), want 1", rows, err)
	}
}
