package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tests are the runs of go test, the fastest first.
func (t target) tests() [][]string {
	runs := [][]string{append([]string{"./" + t.dir}, t.args...)}
	if t.also != nil {
		runs = append(runs, t.also)
	}
	return runs
}

// judge runs the tests against a mutant until one fails.
func (t target) judge(ctx context.Context, m mutant, limit time.Duration) fate {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return invalid
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := writeOverlay(dir, m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return invalid
	}
	for _, tests := range t.tests() {
		out, err := goTest(ctx, overlay, limit, tests)
		switch {
		case err == nil:
			continue
		case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
			return invalid
		case bytes.Contains(out, []byte("panic: test timed out")), bytes.Contains(out, []byte("signal: killed")):
			return timedOut
		}
		return killed
	}
	return survived
}

// writeOverlay writes the overlay with which the compiler reads the mutant instead of the original.
func writeOverlay(dir string, m mutant) (string, error) {
	original, err := filepath.Abs(m.path)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, m.text, 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// goTest runs tests and kills the processes that they started.
func goTest(ctx context.Context, overlay string, limit time.Duration, tests []string) ([]byte, error) {
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout=" + limit.String()}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, tests...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // several run at a time
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for a process of the test that keeps our pipe open
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the tests had already passed
	}
	if err != nil && strings.TrimSpace(string(out)) == "" {
		err = fmt.Errorf("%w: %s", err, strings.Join(tests, " "))
	}
	return out, err
}
