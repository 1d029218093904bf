//go:build linux

package pgserver

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can change users")
	}
}

func TestRootWithUnreachableDataDirectory(t *testing.T) {
	t.Parallel()
	needRoot(t)
	private := publicDir(t)
	if err := os.Chmod(private, 0o700); err != nil { // like a checkout below /root
		t.Fatal(err)
	}
	dataDir := filepath.Join(private, "data")
	s := start(t, dataDir)
	h := homeOf(t, dataDir)
	t.Cleanup(func() { _ = os.RemoveAll(h.dir) })
	if h.as.uid == 0 || strings.HasPrefix(h.dir, private) {
		t.Fatalf("home %+v", h)
	}
	exe(t, s.URL(), "CREATE TABLE kept AS SELECT 42 AS n")
	s.Stop()

	// A moved data directory finds its data; a new one at the old place is empty.
	moved := filepath.Join(private, "moved")
	if err := os.Rename(dataDir, moved); err != nil {
		t.Fatal(err)
	}
	s = start(t, moved)
	if n := query[int](t, s.URL(), "SELECT n FROM kept"); n != 42 {
		t.Errorf("n = %d", n)
	}
	s.Stop()

	if err := os.Rename(h.dir, h.dir+"-away"); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DataDir: moved, Logger: testLogger(t)})
	if restoreErr := os.Rename(h.dir+"-away", h.dir); restoreErr != nil {
		t.Fatal(restoreErr)
	}
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("err = %v, want an error instead of an empty database", err)
	}
}

func TestRootWithPreparedDirectory(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dataDir := publicDir(t)
	if err := os.Mkdir(filepath.Join(dataDir, "postgres"), 0o700); err != nil { // a volume
		t.Fatal(err)
	}
	start(t, dataDir)
	if h := homeOf(t, dataDir); h.dir != filepath.Join(dataDir, "postgres") || h.as.uid == 0 {
		t.Errorf("home %+v", h)
	}
}

func TestOtherUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	dataDir := publicDir(t)
	if err := os.Chown(dataDir, uid, uid); err != nil {
		t.Fatal(err)
	}
	owner := startProcess(t, dataDir, uint32(uid))
	h := homeOf(t, dataDir)
	if h.as.uid != uint32(uid) {
		t.Errorf("the server's files belong to %d, want %d", h.as.uid, uid)
	}
	// Root attaches, and takes over as the same user.
	s := start(t, dataDir)
	before, _ := h.postmaster()
	owner.kill(t)
	eventually(t, "root runs the server", func() bool {
		pid, ready := h.postmaster()
		return ready && pid != before
	})
	if n := query[int](t, s.URL(), "SELECT 1"); n != 1 {
		t.Errorf("SELECT 1 = %d", n)
	}
	s.Stop()
	startProcess(t, dataDir, uint32(uid))
}
