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
	"strconv"
	"strings"
	"syscall"
)

const (
	superuser = "yeolda"
	database  = "postgres"
	port      = "5432" // only names the socket; nothing listens on TCP

	// maxSocketPath is the longest address of a Unix socket that fits
	// everywhere: Linux has room for 107 bytes, macOS for 103.
	maxSocketPath = 103
)

// home is the place of one private server: a directory with the cluster and,
// where its path is short enough, the socket.
type home struct {
	dir string  // absolute, without links, mode 0700
	as  account // who the server runs as
}

// account is a user of the machine.
type account struct{ uid, gid uint32 }

// findHome returns the home recorded in a data directory, or an error that is
// os.ErrNotExist when there is none yet.
func findHome(dataDir string) (home, error) {
	link := filepath.Join(dataDir, "postgres")
	dir, err := filepath.EvalSymlinks(link)
	if err != nil {
		if target, linkErr := os.Readlink(link); linkErr == nil {
			// Never start empty beside data that are only not mounted.
			return home{}, fmt.Errorf("%s leads to %s, which cannot be reached: bring it back, or remove the link to begin with an empty database", link, target)
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
		// A directory or volume that root prepared; PostgreSQL never runs as root.
		if as, err = unprivileged(); err != nil {
			return home{}, err
		}
		if err := os.Chown(dir, int(as.uid), int(as.gid)); err != nil {
			return home{}, err
		}
	}
	return home{dir: dir, as: as}, nil
}

// makeHome makes the home of a new data directory. Run by root, the server needs
// another user; when that user cannot reach the data directory (a checkout below
// /root, say), the home is made elsewhere and a link leads to it. The link keeps
// a moved data directory with its data, and a removed one really is empty again.
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
		// Still root's; findHome gives it to the server's user.
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

// socketDir is the home itself, or a short path for a home whose name is too
// long for a socket or holds a comma, which separates hosts and socket
// directories.
func (h home) socketDir() string {
	if len(filepath.Join(h.dir, ".s.PGSQL."+port)) <= maxSocketPath && !strings.Contains(h.dir, ",") {
		return h.dir
	}
	return filepath.Join("/tmp", h.name())
}

// makeSocketDir makes the short socket directory. Anyone could have made it
// first in /tmp, so it must be the server's own and closed to others.
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
		return fmt.Errorf("socket directory %s belongs to somebody else or is open to others", dir)
	}
	return nil
}

func (h home) url() string {
	// pgx reads %20 as a space, but not +.
	host := strings.ReplaceAll(url.QueryEscape(h.socketDir()), "+", "%20")
	return fmt.Sprintf("postgres:///%s?host=%s&port=%s&user=%s", database, host, port, superuser)
}

// majorVersion is the version that made the cluster, or "" when there is none.
func (h home) majorVersion() string {
	content, _ := os.ReadFile(filepath.Join(h.cluster(), "PG_VERSION"))
	return strings.TrimSpace(string(content))
}

// postmaster reads the process id and the state from postmaster.pid: the first
// and the eighth line, as pg_ctl does.
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

// initialize makes the cluster beside its final place, under a name nobody has
// used before, and moves it there complete, so that a half-made one is never
// taken for a database.
func (h home) initialize(ctx context.Context, bin string, volatile bool) error {
	unfinished, err := os.MkdirTemp(h.dir, "unfinished-*")
	if err != nil {
		return err
	}
	if err := h.as.give(unfinished); err != nil {
		return err
	}
	args := []string{"--pgdata", unfinished, "--username", superuser, "--auth", "trust", "--encoding", "UTF8", "--locale", "C"}
	if volatile {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), args...)
	cmd.Dir = h.dir
	cmd.Env = childEnv()
	cmd.SysProcAttr = h.as.procAttr()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastLine(string(out)))
	}
	if err := os.Rename(unfinished, h.cluster()); err != nil {
		return err
	}
	// What an owner that was killed left behind. Not before now: its initdb may
	// have been at work still. An error leaves rubbish, nothing worse.
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
