//go:build linux

package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakePrograms creates a directory with programs that only print their version.
func fakePrograms(t *testing.T, dir, version string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + " (Debian)'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestChoosePrograms(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	v15 := fakePrograms(t, filepath.Join(root, "15"), "15.18")
	v17 := fakePrograms(t, filepath.Join(root, "17"), "17.2")
	client := filepath.Join(root, "client") // without a server
	if err := os.Mkdir(client, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		candidates []string
		major      string
		want       string
		problem    string
	}{
		{"first for a new cluster", []string{client, v17, v15}, "", v17, ""},
		{"the one that made the cluster", []string{v17, v15}, "15", v15, ""},
		{"none", []string{client, filepath.Join(root, "missing")}, "", "", "apt install postgresql"},
		{"another version only", []string{v17}, "15", "", "made by PostgreSQL 15, but found 17 in " + v17},
	} {
		got, err := choosePrograms(t.Context(), c.candidates, c.major)
		if got != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %q, %v; want %q, %q", c.name, got, err, c.want, c.problem)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %v", c.name, err)
		}
	}
}

func TestNamedProgramsAreTakenOrRefused(t *testing.T) {
	t.Setenv("YEOLDA_PG_BIN", t.TempDir())
	if _, err := findPrograms(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "YEOLDA_PG_BIN") {
		t.Errorf("err = %v, want a refusal of the empty directory", err)
	}
	if _, err := Start(t.Context(), Options{DataDir: publicDir(t), Logger: testLogger(t)}); err == nil {
		t.Error("started without programs")
	}
	own := fakePrograms(t, t.TempDir(), "16.1")
	if got, err := findPrograms(t.Context(), own, ""); got != own || err != nil {
		t.Errorf("%q, %v; the option must win over the environment", got, err)
	}
	t.Setenv("YEOLDA_PG_BIN", own)
	if got, err := findPrograms(t.Context(), "", ""); got != own || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHighestVersionFirst(t *testing.T) {
	t.Parallel()
	dirs := []string{"/usr/lib/postgresql/9.6/bin", "/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/100/bin"}
	byVersion := slices.SortedFunc(slices.Values(dirs), newestFirst)
	if want := []string{dirs[2], dirs[1], dirs[0]}; !slices.Equal(byVersion, want) {
		t.Errorf("%v, want %v", byVersion, want)
	}
}

func TestClusterOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	s := start(t, dataDir)
	s.Stop()
	if err := os.WriteFile(filepath.Join(s.home.cluster(), "PG_VERSION"), []byte("8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DataDir: dataDir, Logger: testLogger(t)})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 8") {
		t.Errorf("err = %v", err)
	}
}

func TestStartTellsWhatPostgresSays(t *testing.T) {
	t.Parallel()
	dataDir := publicDir(t)
	s := start(t, dataDir)
	s.Stop()
	if err := os.Remove(filepath.Join(s.home.cluster(), "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DataDir: dataDir, Logger: testLogger(t)})
	if err == nil || !strings.Contains(err.Error(), "pg_control") || errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v, want the complaint of postgres", err)
	}
}
