//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// unprivileged is the account of a server that root starts: postgres, which the distributions' packages create, or
// else the system account without rights.
func unprivileged() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return account{}, fmt.Errorf("user %s: %w", name, err)
		}
		return account{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return account{}, errors.New("PostgreSQL does not run as root, and neither of its accounts (postgres, 65534) exists")
}

// canReach reports whether the account may enter dir and all directories above it.
func (a account) canReach(dir string) (bool, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, err
	}
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return false, err
		}
		search := os.FileMode(0o001)
		switch owner := info.Sys().(*syscall.Stat_t); {
		case owner.Uid == a.uid:
			search = 0o100
		case owner.Gid == a.gid:
			search = 0o010
		}
		if info.Mode()&search == 0 {
			return false, nil
		}
		if dir == filepath.Dir(dir) {
			return true, nil
		}
		dir = filepath.Dir(dir)
	}
}

// give makes the account the owner of a directory that this process has created.
func (a account) give(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// credential lets a child process run as the account; nil if it does so anyway.
func (a account) credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}
