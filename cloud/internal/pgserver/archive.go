//go:build unix

package pgserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// archiveTimeout bounds the age of changes that are not in the outbox yet.
const archiveTimeout = "30s"

// outbox is the directory into which the server copies each finished segment of its write-ahead log. Archiving is on while
// it exists, also for commands that start the server, so the archive has no gaps.
func (h home) outbox() string { return filepath.Join(h.dir, "outbox") }

func (h home) archiving() bool {
	info, err := os.Stat(h.outbox())
	return err == nil && info.IsDir()
}

// setArchiving creates or removes the outbox.
func (h home) setArchiving(a Archiving) error {
	switch {
	case a == ArchivingOff:
		return os.RemoveAll(h.outbox())
	case a == ArchivingOn && !h.archiving():
		if err := os.Mkdir(h.outbox(), 0o700); err != nil {
			return err
		}
		return h.as.give(h.outbox())
	}
	return nil
}

// archiveSettings copy a segment under another name first, so that the outbox holds complete segments only, which are on
// the disk before the server may recycle them. The server copies a segment again if it crashed before it noted the success.
func (h home) archiveSettings() []string {
	if !h.archiving() {
		return []string{"archive_mode=off"}
	}
	part, whole := shellQuote(filepath.Join(h.outbox(), ".part")), shellQuote(h.outbox())
	return []string{
		"archive_mode=on",
		"archive_timeout=" + archiveTimeout,
		fmt.Sprintf(`archive_command=cp "%%p" %s && sync %s && mv %s %s/"%%f"`, part, part, part, whole),
	}
}

// shellQuote quotes a path for a command in PostgreSQL's settings, in which % begins a placeholder.
func shellQuote(path string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(path, "'", `'\''`), "%", "%%") + "'"
}

// Outbox returns the directory of finished segments of the write-ahead log, which the caller removes once it has stored
// them elsewhere.
func (s *Server) Outbox() string { return s.home.outbox() }

// BaseBackup writes a copy of the running cluster, as a tar file, while the service works. The segments of the write-ahead
// log from before its start until its end belong to it; they are in the outbox when BaseBackup returns.
func (s *Server) BaseBackup(ctx context.Context, w io.Writer) error {
	major, err := strconv.Atoi(s.home.majorVersion())
	if err != nil {
		return fmt.Errorf("version of the cluster: %w", err)
	}
	program, err := Tool(ctx, "pg_basebackup", major)
	if err != nil {
		return err
	}
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, program, "--dbname="+s.URL(), "--no-password", "--pgdata=-", "--format=tar", "--wal-method=none", "--checkpoint=fast")
	cmd.Env, cmd.Stdout, cmd.Stderr = childEnv(), w, &complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("pg_basebackup: %w: %s", err, lastLine(complaint.String()))
	}
	return nil
}
