package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrMissing is returned when a program of the system is not installed; the error names it.
var ErrMissing = errors.New("is not installed")

// Find returns the path of a program that may not be in PATH.
func Find(name, usually string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if _, err := os.Stat(usually); err != nil {
		return "", fmt.Errorf("%s %w", name, ErrMissing)
	}
	return usually, nil
}

// PostgresPrograms returns the directory of PostgreSQL's server programs.
func PostgresPrograms() (string, error) {
	if dir := os.Getenv("YEOLDA_PG_BIN"); dir != "" {
		return dir, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL's server %w in /usr/lib/postgresql; YEOLDA_PG_BIN may name its directory", ErrMissing)
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// PostgresAccount returns the account for a server that root starts, and gives it the data directory: PostgreSQL refuses to
// run as root. It returns nil for any other user.
func PostgresAccount(data string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(data, uid, gid); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

const dirPrefix = "yeolda-proof-"

// newDir creates a directory on disk, so that commits are durable, and removes those of finished runs.
func newDir() (string, error) {
	base := "/var/tmp"
	left, err := filepath.Glob(filepath.Join(base, dirPrefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(dir), dirPrefix+"%d-", &pid); err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		_ = os.RemoveAll(dir) // it may belong to another user
	}
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) //nolint:gosec // PostgreSQL runs as another user
}
