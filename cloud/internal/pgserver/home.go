//go:build unix

package pgserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// ServiceRole is the role of the service on a private server. Its superuser owns the tables.
const ServiceRole = "yeolda_service"

const (
	superuser = "yeolda"
	database  = "postgres"
	port      = "5432" // only part of the socket's name; there is no TCP listener

	// maxSocketPath is the longest address of a Unix socket on all supported systems: 107 bytes on Linux, 103 on
	// macOS.
	maxSocketPath = 103
)

// home is the place of a private server: a directory with the cluster and, if its path is short enough, the socket.
type home struct {
	dir string  // absolute, without links, mode 0700
	as  account // the user that the server runs as
}

// account is a user of the machine.
type account struct{ uid, gid uint32 }

// findHome returns the home recorded in a data directory. The error is os.ErrNotExist if there is none yet.
func findHome(dataDir string) (home, error) {
	link := filepath.Join(dataDir, "postgres")
	dir, err := filepath.EvalSymlinks(link)
	if err != nil {
		if target, linkErr := os.Readlink(link); linkErr == nil {
			// Do not create an empty database: the data directory may only be unmounted.
			return home{}, fmt.Errorf("%s leads to %s, which cannot be reached: restore it, or remove the link to begin with an empty database", link, target)
		}
		return home{}, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return home{}, err
	}
	owner := info.Sys().(*syscall.Stat_t)
	as := account{uid: owner.Uid, gid: owner.Gid}
	if as.uid == 0 {
		// A directory or volume prepared by root; PostgreSQL never runs as root.
		if as, err = unprivileged(); err != nil {
			return home{}, err
		}
		if err := os.Chown(dir, int(as.uid), int(as.gid)); err != nil {
			return home{}, err
		}
	}
	return home{dir: dir, as: as}, nil
}

// makeHome creates the home of a new data directory. If root runs it, the server needs another user. If that user
// cannot reach the data directory (for instance a checkout below /root), the home is created elsewhere and linked. The
// link keeps a moved data directory with its data, and a removed one is empty again.
func makeHome(dataDir string, logger *slog.Logger) (home, error) {
	path := filepath.Join(dataDir, "postgres")
	if os.Geteuid() != 0 {
		if err := os.Mkdir(path, 0o700); err != nil {
			return home{}, err
		}
		return findHome(dataDir)
	}
	as, err := unprivileged()
	if err != nil {
		return home{}, err
	}
	reachable, err := as.canReach(dataDir)
	if err != nil {
		return home{}, err
	}
	if reachable {
		// It belongs to root until findHome gives it to the server's user.
		if err := os.Mkdir(path, 0o700); err != nil {
			return home{}, err
		}
		return findHome(dataDir)
	}
	dir, err := os.MkdirTemp("/var/lib", "yeolda-*")
	if err != nil {
		// A read-only system.
		if dir, err = os.MkdirTemp("/var/tmp", "yeolda-*"); err != nil {
			return home{}, err
		}
	}
	if err := os.Symlink(dir, path); err != nil {
		return home{}, err
	}
	logger.Info("the user of PostgreSQL cannot reach the data directory, keeping the database elsewhere", "link", path, "home", dir)
	return findHome(dataDir)
}

func (h home) cluster() string { return filepath.Join(h.dir, "cluster") }

// name marks every process of this server on its command line.
func (h home) name() string {
	sum := sha256.Sum256([]byte(h.dir))
	return "yeolda-" + hex.EncodeToString(sum[:6])
}

// socketDir is the home itself, or a short path if the home's name is too long for a socket or contains a comma, which
// separates hosts and socket directories.
func (h home) socketDir() string {
	if len(filepath.Join(h.dir, ".s.PGSQL."+port)) <= maxSocketPath && !strings.Contains(h.dir, ",") {
		return h.dir
	}
	return filepath.Join("/tmp", h.name())
}

// makeSocketDir creates the short socket directory. Another user may have created it in /tmp before, so it must belong
// to the server's user and be closed to others.
func (h home) makeSocketDir() error {
	dir := h.socketDir()
	if dir == h.dir {
		return nil
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return h.as.give(dir)
	}
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if info.Mode() != os.ModeDir|0o700 || info.Sys().(*syscall.Stat_t).Uid != h.as.uid {
		return fmt.Errorf("socket directory %s belongs to another user or is open to others", dir)
	}
	return nil
}

func (h home) url(user string) string {
	// pgx reads %20 as a space, but not +.
	host := strings.ReplaceAll(url.QueryEscape(h.socketDir()), "+", "%20")
	return fmt.Sprintf("postgres:///%s?host=%s&port=%s&user=%s", database, host, port, user)
}

// majorVersion is the version that created the cluster, or "" if there is none.
func (h home) majorVersion() string {
	content, _ := os.ReadFile(filepath.Join(h.cluster(), "PG_VERSION"))
	return strings.TrimSpace(string(content))
}

// postmaster reads the process id and the state from postmaster.pid: the first and the eighth line, as pg_ctl does.
func (h home) postmaster() (pid int, ready bool) {
	content, _ := os.ReadFile(filepath.Join(h.cluster(), "postmaster.pid"))
	lines := strings.Split(string(content), "\n")
	pid, _ = strconv.Atoi(lines[0])
	return pid, len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready"
}

// running reports whether a server that accepts connections runs here.
func (h home) running() bool {
	pid, ready := h.postmaster()
	if !ready {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// createCluster creates a cluster under a unique name.
func (h home) createCluster(ctx context.Context, bin string, volatile bool) (dir string, err error) {
	dir, err = os.MkdirTemp(h.dir, "unfinished-*")
	if err != nil {
		return "", err
	}
	if err := h.as.give(dir); err != nil {
		return "", err
	}
	args := []string{"--pgdata", dir, "--username", superuser, "--auth", "trust", "--encoding", "UTF8", "--locale", "C"}
	args = append(args, checksumFlags(ctx, bin)...)
	if volatile {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), args...)
	if out, err := h.run(cmd); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, lastLine(string(out)))
	}
	return dir, nil
}

// run runs a program of PostgreSQL as the account of the server, and returns its output. It keeps the thread until the program has ended:
// the kernel would interrupt the program with the end of the thread, such as that of a supervise.
func (h home) run(cmd *exec.Cmd) (output []byte, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.Dir, cmd.Env, cmd.SysProcAttr = h.dir, childEnv(), h.as.procAttr()
	return cmd.CombinedOutput()
}

// initialize creates the cluster beside its final place and moves it there when it is complete, so that an incomplete one
// is never used.
func (h home) initialize(ctx context.Context, bin string, volatile bool) error {
	if kept, err := filepath.Glob(h.cluster() + "-*"); err != nil || len(kept) > 0 {
		// Do not create an empty database in place of one that an upgrade has moved away.
		return errors.Join(err, fmt.Errorf("%s is missing, but an upgrade has left %v: if the upgrade was interrupted, rename it to the missing one and repeat yeolda pg-upgrade",
			h.cluster(), kept))
	}
	unfinished, err := h.createCluster(ctx, bin, volatile)
	if err != nil {
		return err
	}
	if err := os.Rename(unfinished, h.cluster()); err != nil {
		return err
	}
	// Remove the remains of an owner that was killed. Not earlier, because its initdb may still have been running. An
	// error only leaves unused files.
	abandoned, _ := filepath.Glob(filepath.Join(h.dir, "unfinished-*"))
	for _, dir := range abandoned {
		_ = os.RemoveAll(dir)
	}
	if volatile {
		return nil
	}
	dir, err := os.Open(h.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync() // the new name must survive what PostgreSQL will sync into it
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
