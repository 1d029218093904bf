//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// dirLock is the lock of a data directory. It ends with Close or with the process.
type dirLock struct{ file *os.File }

// tryLock takes the lock file of a data directory. It returns nil if another process holds it.
func tryLock(path string) (*dirLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &dirLock{file}, nil
	}
	file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// Close releases the lock. To close the file is not enough: a child that this process is starting holds a copy of the
// descriptor, and with it the lock, until it executes its program.
func (l *dirLock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
