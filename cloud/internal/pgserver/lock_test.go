//go:build unix

package pgserver

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestLockEndsWithClose holds that a copy of the descriptor, which a child has while it is being started, keeps no lock.
func TestLockEndsWithClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := tryLock(path)
	if err != nil || lock == nil {
		t.Fatalf("lock: got %v, %v", lock, err)
	}
	if other, err := tryLock(path); err != nil || other != nil {
		t.Fatalf("while it is held: got %v, %v, want none", other, err)
	}
	inherited, err := syscall.Dup(int(lock.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	lock, err = tryLock(path)
	if err != nil || lock == nil {
		t.Fatalf("after Close: got %v, %v, want the lock", lock, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}
