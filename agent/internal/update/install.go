package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"crypto/ed25519"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/protocol"
)

// maxRequest bounds the request that the agent left.
const maxRequest = 64 << 10

// Install is root's part: it copies the package that the agent left in dir into work, which only root may write, verifies the
// copy, and passes it to install. The request is removed first, so that a failure is not repeated without end.
func Install(dir, work string, keys []ed25519.PublicKey, install func(deb string) error) error {
	if err := Share(work); err != nil {
		return err
	}
	if folder, err := lock(work, unix.LOCK_EX); err == nil { // before the request is removed
		defer folder.Close()
	}
	text, err := readOwn(filepath.Join(dir, requestFile), maxRequest)
	_ = os.Remove(filepath.Join(dir, requestFile)) // a folder that the agent has replaced is of no use to it
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	var request Request
	if err := json.Unmarshal(text, &request); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if !protocol.ValidVersion(request.Version) {
		return errors.New("update: the version is not valid")
	}
	if err := request.Package.Verify(request.Version, keys...); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	from, err := openOwn(filepath.Join(dir, packageFile))
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	defer from.Close()
	copied := filepath.Join(work, packageFile)
	to, err := os.OpenFile(copied, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	defer func() { _ = os.Remove(copied) }()
	err = copyVerified(to, from, request.Package)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if err := install(copied); err != nil {
		return fmt.Errorf("update: install version %s: %w", request.Version, err)
	}
	return nil
}

// Requested reports whether a request is in dir, the agent's folder.
func Requested(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, requestFile))
	return err == nil
}

// installing reports whether Install runs with this folder. The lock ends with its process.
func installing(work string) bool {
	folder, err := lock(work, unix.LOCK_SH)
	if err == nil {
		folder.Close()
	}
	return errors.Is(err, unix.EWOULDBLOCK)
}

// lock opens a folder and locks it, without waiting.
func lock(folder string, how int) (*os.File, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Share makes a folder in which root writes and the agent reads, because it reports the outcome of an update.
func Share(work string) error {
	if err := errors.Join(os.MkdirAll(work, 0o755), os.Chmod(work, 0o755)); err != nil { //nolint:gosec // see above
		return fmt.Errorf("update: %w", err)
	}
	return nil
}

// openOwn opens a regular file that is not a link: the agent owns the folder, and root must not follow it elsewhere.
func openOwn(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), fmt.Errorf("%s is not a regular file", name))
	}
	return f, nil
}

func readOwn(name string, limit int64) ([]byte, error) {
	f, err := openOwn(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
