//go:build unix

package pgserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	readyPoll = 5 * time.Millisecond

	// stopLimit bounds a fast shutdown (SIGINT), its checkpoint included. After it the server is killed and recovers
	// at the next start.
	stopLimit = 20 * time.Second

	// drainLimit bounds the reading of output after postgres has ended: session processes of a crashed server may
	// still hold its stderr.
	drainLimit = 100 * time.Millisecond
)

// runPostgres runs the server until it ends or ctx is done, and calls onReady when it accepts connections. The error
// contains the last message of postgres.
func (s *Server) runPostgres(ctx context.Context, h home, bin string, onReady func()) error {
	output, stderr, err := os.Pipe()
	if err != nil {
		return err
	}
	defer output.Close()

	cmd := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), h.arguments(s.opts.Volatile)...)
	cmd.Dir = h.dir
	cmd.Env = childEnv()
	cmd.Stderr = stderr
	cmd.SysProcAttr = h.as.procAttr()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = stopLimit
	err = cmd.Start()
	stderr.Close()
	if err != nil {
		return err
	}

	complaint := make(chan string, 1)
	go func() { complaint <- logOutput(output, s.logger) }() //nolint:contextcheck // the output ends with the program
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if pid, ready := h.postmaster(); ready && pid == cmd.Process.Pid {
				tick.Stop()
				onReady()
			}
		case err := <-exited:
			// Fails only for a closed pipe, which has no reader.
			_ = output.SetReadDeadline(time.Now().Add(drainLimit))
			said := <-complaint
			if err == nil {
				return fmt.Errorf("postgres ended: %s", said)
			}
			return fmt.Errorf("postgres ended: %w: %s", err, said)
		}
	}
}

// arguments are the complete configuration of the server, so a cluster of an earlier release gets the current
// settings.
func (h home) arguments(volatile bool) []string {
	settings := []string{
		"cluster_name=" + h.name(),
		"listen_addresses=",
		"port=" + port,
		"unix_socket_directories=" + h.socketDir(),
		"unix_socket_permissions=0700",
		"max_connections=200",
		"shared_buffers=256MB",
		"timezone=UTC",
		// Holds and changes of the same room can deadlock. The victim is tried again, and the other transaction should
		// not wait a second for that.
		"deadlock_timeout=100ms",
		// Failed statements are reported to the client. In the log they would show customers' data.
		"log_min_messages=log",
		"log_min_error_statement=panic",
		"log_destination=stderr",
		"logging_collector=off",
		"log_line_prefix=",
	}
	settings = append(settings, h.archiveSettings()...)
	settings = append(settings, h.recoverySettings()...)
	if volatile {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	args := []string{"-D", h.cluster()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// logOutput copies the output of postgres to the log until the pipe ends, and returns the last error message.
func logOutput(output io.Reader, logger *slog.Logger) (complaint string) {
	lines := bufio.NewScanner(output)
	level, logging := slog.LevelWarn, false
	for lines.Scan() {
		line := lines.Text()
		severity, text, _ := strings.Cut(line, ":")
		switch severity {
		case "LOG":
			level, logging = slog.LevelDebug, true
		case "FATAL": // ends one session, whose client receives it; or the start, which reports it
			level, logging = slog.LevelDebug, true
			complaint = strings.TrimSpace(text)
		case "PANIC":
			level, logging = slog.LevelError, true
			complaint = strings.TrimSpace(text)
		default:
			// A continuation of the previous line, or output of the loader.
			if !logging {
				complaint = strings.TrimSpace(complaint + " " + line)
			}
		}
		logger.Log(context.Background(), level, "postgres", "line", line)
	}
	return complaint
}

// childEnv removes the caller's PG* variables and locale.
func childEnv() []string {
	return []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
}
