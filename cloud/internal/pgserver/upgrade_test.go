//go:build linux

package pgserver

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpgrade moves a cluster with pg_upgrade. Only one version of PostgreSQL is installed here, so it is moved to the same
// one; pg_upgrade does the same work then.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	dataDir := filepath.Join(publicDir(t), "data")
	opts := Options{DataDir: dataDir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Archive: ArchivingOn}
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	exe(t, s.URL(), "CREATE EXTENSION btree_gist")
	exe(t, s.URL(), "CREATE TABLE kept AS SELECT n FROM generate_series(1, 1000) n")
	exe(t, s.URL(), "CREATE ROLE "+ServiceRole+" LOGIN")
	system := query[string](t, s.URL(), "SELECT system_identifier::text FROM pg_control_system()")
	h := homeOf(t, dataDir)
	bin, err := findPrograms(t.Context(), "", h.majorVersion())
	if err != nil {
		t.Fatal(err)
	}
	if err := upgrade(t.Context(), opts, h, bin, bin); !errors.Is(err, ErrInUse) {
		t.Fatalf("while the server runs: got %v, want ErrInUse", err)
	}
	s.Stop()
	if err := os.WriteFile(filepath.Join(h.outbox(), "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if from, to, err := Upgrade(t.Context(), opts); err != nil || from != to {
		t.Errorf("without a newer version: got %s, %s, %v, want nothing to do", from, to, err)
	}
	if err := upgrade(t.Context(), opts, h, bin, bin); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h.outbox(), "old")); err == nil {
		t.Error("a segment of the old cluster is still in the outbox")
	}
	s = start(t, dataDir)
	if n := query[int](t, s.URL(), "SELECT count(*) FROM kept"); n != 1000 {
		t.Errorf("rows after the upgrade: got %d, want 1000", n)
	}
	if got := query[string](t, s.URL(), "SELECT system_identifier::text FROM pg_control_system()"); got == system {
		t.Error("the cluster is still the old one")
	}
	if n := query[int](t, s.ServiceURL(), "SELECT 1"); n != 1 {
		t.Error("the role of the service was not moved")
	}
	if _, err := os.Stat(h.cluster() + "-" + h.majorVersion()); err != nil {
		t.Errorf("the old cluster: %v", err)
	}
	s.Stop()
	if err := upgrade(t.Context(), opts, h, bin, bin); err == nil {
		t.Error("the kept cluster of the last upgrade was overwritten")
	}

	// As after a power failure between the last two steps of an upgrade: the old cluster is moved away, and the new one is not in its place.
	unfinished := filepath.Join(h.dir, "unfinished-1")
	if err := os.Rename(h.cluster(), unfinished); err != nil {
		t.Fatal(err)
	}
	if s, err := Start(t.Context(), opts); err == nil {
		s.Stop()
		t.Error("an empty database was created in place of the one that was being upgraded")
	} else if !strings.Contains(err.Error(), h.cluster()+"-") {
		t.Errorf("the old cluster is not named: %v", err)
	}
	if _, err := os.Stat(unfinished); err != nil {
		t.Errorf("the new cluster: %v", err)
	}
}

// TestArchivingSurvivesACommand holds that a command, which does not know the setting, leaves no gap.
func TestArchivingSurvivesACommand(t *testing.T) {
	t.Parallel()
	dataDir := filepath.Join(publicDir(t), "it's 100% archived")
	for _, c := range []struct {
		archive Archiving
		want    string
	}{{ArchivingKept, "off"}, {ArchivingOn, "on"}, {ArchivingKept, "on"}, {ArchivingOff, "off"}, {ArchivingKept, "off"}} {
		s, err := Start(t.Context(), Options{DataDir: dataDir, Logger: slog.New(slog.DiscardHandler), Archive: c.archive})
		if err != nil {
			t.Fatal(err)
		}
		if got := query[string](t, s.URL(), "SHOW archive_mode"); got != c.want {
			t.Errorf("Archive %d: archive_mode is %s, want %s", c.archive, got, c.want)
		}
		if c.want == "on" {
			segment := query[string](t, s.URL(), "SELECT pg_walfile_name(pg_switch_wal())")
			eventually(t, "the segment in the outbox", func() bool { _, err := os.Stat(filepath.Join(s.Outbox(), segment)); return err == nil })
		}
		s.Stop()
	}
}
