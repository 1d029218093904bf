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

	// stopLimit is how long a fast shutdown (SIGINT) may take, including its
	// checkpoint. After it the server is killed and recovers at the next start.
	stopLimit = 20 * time.Second

	// drainLimit is how long to read on after postgres is gone: a crashed server
	// may leave session processes that still hold its stderr.
	drainLimit = 100 * time.Millisecond
)

// runPostgres runs the server until it ends or ctx is done, and calls onReady
// when it accepts connections. The error carries what postgres said last.
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
			// Fails only for a closed pipe, and then nobody reads any more.
			_ = output.SetReadDeadline(time.Now().Add(drainLimit))
			said := <-complaint
			if err == nil {
				return fmt.Errorf("postgres ended: %s", said)
			}
			return fmt.Errorf("postgres ended: %w: %s", err, said)
		}
	}
}

// arguments are the server's whole configuration, so that a cluster made by an
// earlier release gets today's settings.
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
		// Holds and changes of the same room can deadlock; the victim is tried
		// again, and the others should not wait a second for it.
		"deadlock_timeout=100ms",
		// Compiling costs more than any query here takes.
		"jit=off",
		// Failed statements are reported to the client. Here they would put
		// customers' data into the log.
		"log_min_messages=log",
		"log_min_error_statement=panic",
		"log_destination=stderr",
		"logging_collector=off",
		"log_line_prefix=",
	}
	if volatile {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	args := []string{"-D", h.cluster()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// logOutput copies what postgres writes to the log until the pipe ends, and
// returns the last complaint.
func logOutput(output io.Reader, logger *slog.Logger) (complaint string) {
	lines := bufio.NewScanner(output)
	level, logging := slog.LevelWarn, false
	for lines.Scan() {
		line := lines.Text()
		severity, text, _ := strings.Cut(line, ":")
		switch severity {
		case "LOG":
			level, logging = slog.LevelDebug, true
		case "FATAL": // ends one session, which is told; or the start, which reports it
			level, logging = slog.LevelDebug, true
			complaint = strings.TrimSpace(text)
		case "PANIC":
			level, logging = slog.LevelError, true
			complaint = strings.TrimSpace(text)
		default:
			// More about the line before, or of the loader or postgres before it logs.
			if !logging {
				complaint = strings.TrimSpace(complaint + " " + line)
			}
		}
		logger.Log(context.Background(), level, "postgres", "line", line)
	}
	return complaint
}

// childEnv keeps the caller's PG* variables and locale away from the server.
func childEnv() []string {
	return []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
}
