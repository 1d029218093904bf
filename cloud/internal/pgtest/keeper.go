//go:build unix

package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/yeolda/yeolda/cloud/internal/pgserver"
)

// The server of a test process runs under another process, its keeper: the test binary again, started with this
// variable. No code runs at the end of a test process, which may also be killed, so the keeper waits for the end of a
// pipe that the test process holds, then stops the server and removes its data. The test process has no goroutine of
// the server that a leak check would find.
const keeperEnv = "YEOLDA_PGTEST_KEEPER"

// An init function, so that packages need no TestMain for it.
func init() {
	if os.Getenv(keeperEnv) == "" {
		return
	}
	if err := keep(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lifeline is the test process's end of the pipe. The variable keeps it from the garbage collector, which would close
// it.
var lifeline *os.File //nolint:unused // being kept is its use

// startKeeper starts the keeper and returns the URL of its server. The keeper shares stderr, so `go test` returns
// after it has cleaned up.
func startKeeper() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	stdin, hold, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer stdin.Close()
	answer, stdout, err := os.Pipe()
	if err != nil {
		hold.Close()
		return "", err
	}
	defer answer.Close()
	lifeline = hold

	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), keeperEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, os.Stderr
	err = cmd.Start()
	stdout.Close()
	if err != nil {
		return "", err
	}
	line, err := bufio.NewReader(answer).ReadString('\n')
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "postgres:") {
		return "", fmt.Errorf("start a private server: %w", errors.Join(errors.New(line), err))
	}
	return line, nil
}

// keep is the main function of a keeper.
func keep() error {
	// A Ctrl-C reaches the test process too, whose end ends this one.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)

	base := baseDir()
	removeAbandoned(base)
	dir, err := os.MkdirTemp(base, fmt.Sprintf("yeolda-pgtest-%d-*", os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()     // what is left, removeAbandoned takes
	if err := os.Chmod(dir, 0o711); err != nil { // for the server's user, when root tests
		return err
	}
	server, err := pgserver.Start(context.Background(), pgserver.Options{
		DataDir:  dir,
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Volatile: true,
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Println(server.URL())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// baseDir is in memory if there is enough: copying a template takes 15 ms there and 200 ms on a disk. Containers often
// have only 64 MB.
func baseDir() string {
	const memory, enough = "/dev/shm", 1 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err == nil && uint64(fs.Bavail)*uint64(fs.Bsize) > enough { //nolint:unconvert // their types differ from system to system
		return memory
	}
	return os.TempDir()
}

// removeAbandoned removes the data of keepers that were killed. Directories that it cannot remove, for instance
// another user's, remain.
func removeAbandoned(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, "yeolda-pgtest-*")) // fails only for an invalid pattern
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.Split(filepath.Base(dir), "-")[2])
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}
