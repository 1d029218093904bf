package postgres_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestCheckDisk fills the disk of a real server. A row that replaces itself is still written there.
func TestCheckDisk(t *testing.T) {
	t.Parallel()
	disk, err := os.MkdirTemp("", "full-disk") // not t.TempDir, which the user of the server cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(disk); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=400m,mode=755"); err != nil {
		t.Skipf("a disk that can be filled needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	server, err := pgserver.Start(t.Context(), pgserver.Options{DataDir: filepath.Join(disk, "data"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	db, err := postgres.OpenMigrated(t.Context(), server.URL(), server.ServiceURL(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	note := func() error { return postgres.NoteSuccess(t.Context(), db.Pool, postgres.WorkWrite, time.Now()) }
	if err := errors.Join(note(), postgres.CheckDisk(t.Context(), db.Pool)); err != nil {
		t.Fatalf("a disk with space: %v", err)
	}
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	if err := note(); err != nil {
		t.Fatalf("a row that replaces itself, on a full disk: %v", err)
	}
	if err := postgres.CheckDisk(t.Context(), db.Pool); !errors.Is(err, postgres.ErrDiskFull) {
		t.Errorf("a full disk: got %v, want ErrDiskFull", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := postgres.CheckDisk(t.Context(), db.Pool); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int64{1 << 20, 4096} {
		for err == nil {
			_, err = io.CopyN(f, zeros{}, size)
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
