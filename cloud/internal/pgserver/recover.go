//go:build unix

package pgserver

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// recovery is the directory with the segments that a restored cluster has to replay. It remains until the restoration has ended.
func (h home) recovery() string { return filepath.Join(h.dir, "recovery") }

// isRestoring reports whether a restoration has begun and not ended.
func (h home) isRestoring() bool {
	_, err := os.Stat(h.recovery())
	return err == nil
}

// untilFile, in recovery, holds the moment at which the replay ends; without it, all segments are replayed.
const untilFile = "until"

// recoverySettings are those of a restored cluster, which replays its segments.
func (h home) recoverySettings() []string {
	if !h.isRestoring() {
		return nil
	}
	settings := []string{
		`restore_command=cp ` + shellQuote(h.recovery()) + `/"%f" "%p"`,
		"recovery_target_action=promote",
		"hot_standby=off",
	}
	if until, err := os.ReadFile(filepath.Join(h.recovery(), untilFile)); err == nil {
		settings = append(settings, "recovery_target_time="+string(until))
	}
	return settings
}

// Restore creates the cluster of a data directory without a database from a base backup. The first Start after it, with
// Options.Restoring, replays the segments that fetch has written into its directory, up to a moment (zero: all of them), and fails
// if they end earlier. Until Server.EndRestoration, another Restore begins anew. After an error, Discard removes what Restore has
// created.
func Restore(ctx context.Context, opts Options, base io.Reader, until time.Time, fetch func(dir string) error) error {
	dataDir, err := filepath.Abs(opts.DataDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dataDir, 0o755); err != nil { //nolint:gosec // PostgreSQL's own directory below it is closed to others
		return err
	}
	lock, err := tryLock(filepath.Join(dataDir, "postgres.lock"))
	if err != nil {
		return err
	}
	if lock == nil {
		return ErrInUse
	}
	defer lock.Close()
	h, err := findHome(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		h, err = makeHome(dataDir, opts.Logger)
	}
	if err != nil {
		return err
	}
	if h.majorVersion() != "" && !h.isRestoring() {
		return ErrNotEmpty
	}
	if err := h.removeUnfinished(ctx, opts.Logger); err != nil {
		return err
	}
	unfinished, err := os.MkdirTemp(h.dir, "unfinished-*")
	if err != nil {
		return err
	}
	if err := h.as.give(unfinished); err != nil {
		return err
	}
	if err := h.unpack(base, unfinished); err != nil {
		return fmt.Errorf("unpack the base backup: %w", err)
	}
	if err := h.verifyBackup(ctx, opts.BinDir, unfinished); err != nil {
		return err
	}
	if err := h.prepareRecovery(unfinished, until, fetch); err != nil {
		return err
	}
	return os.Rename(unfinished, h.cluster())
}

// removeUnfinished removes what a restoration that was killed has left, which may still run.
func (h home) removeUnfinished(ctx context.Context, logger *slog.Logger) error {
	if err := endSurvivors(ctx, h, logger); err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(h.dir, "unfinished-*"))
	for _, dir := range append(left, h.cluster(), h.recovery()) { // recovery last: without it, the cluster would count as a database
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// EndRestoration makes the restored cluster an ordinary one.
func (s *Server) EndRestoration() error { return os.RemoveAll(s.home.recovery()) }

// unpack creates the files of a base backup as the server's user. It reads base to its end, which is behind that of the files:
// only there the reader knows that nothing was changed.
func (h home) unpack(base io.Reader, dir string) error {
	for files := tar.NewReader(base); ; {
		entry, err := files.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, base)
			return err
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, entry.Name) //nolint:gosec // checked below
		switch {
		case !filepath.IsLocal(entry.Name):
			return fmt.Errorf("%q is outside of the directory", entry.Name)
		case entry.Typeflag == tar.TypeDir:
			err = errors.Join(os.MkdirAll(path, 0o700), h.as.give(path))
		case entry.Typeflag == tar.TypeReg:
			err = h.writeFile(path, files)
		default:
			err = fmt.Errorf("%q is neither a file nor a directory", entry.Name)
		}
		if err != nil {
			return err
		}
	}
}

// writeFile creates a file of the server's user.
func (h home) writeFile(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close(), h.as.give(path))
}

// verifyBackup compares each file with the checksums in the backup's manifest.
func (h home) verifyBackup(ctx context.Context, override, dir string) error {
	version, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("the base backup is incomplete: %w", err)
	}
	bin, err := findPrograms(ctx, override, strings.TrimSpace(string(version)))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "pg_verifybackup"), "--no-parse-wal", "--quiet", dir)
	if out, err := h.run(cmd); err != nil {
		return fmt.Errorf("pg_verifybackup: %w: %s", err, lastLine(string(out)))
	}
	return nil
}

// prepareRecovery fetches the segments and marks the cluster for their replay.
func (h home) prepareRecovery(cluster string, until time.Time, fetch func(dir string) error) error {
	if err := os.Mkdir(h.recovery(), 0o700); err != nil {
		return err
	}
	if err := errors.Join(h.as.give(h.recovery()), fetch(h.recovery())); err != nil {
		return err
	}
	if !until.IsZero() {
		text := strings.NewReader(until.UTC().Format("2006-01-02 15:04:05.999999+00"))
		if err := h.writeFile(filepath.Join(h.recovery(), untilFile), text); err != nil {
			return err
		}
	}
	segments, err := filepath.Glob(filepath.Join(h.recovery(), "*"))
	for _, path := range segments {
		err = errors.Join(err, h.as.give(path))
	}
	return errors.Join(err, h.writeFile(filepath.Join(cluster, "recovery.signal"), strings.NewReader("")))
}

// Discard removes the private database of a data directory, which must not be in use.
func Discard(dataDir string) error {
	link := filepath.Join(dataDir, "postgres")
	dir, err := filepath.EvalSymlinks(link)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), os.RemoveAll(link), os.RemoveAll(filepath.Join(dataDir, "postgres.lock")))
}
