package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// elsewhere is a machine without the service: `yeolda` in an empty directory, without a setting, and without a network where the
// kernel permits a network of one's own.
type elsewhere struct {
	*testing.T
	dir string
}

func newElsewhere(t *testing.T) elsewhere {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Link(program, filepath.Join(dir, "yeolda")); err != nil {
		content, err := os.ReadFile(program)
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "yeolda"), content, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return elsewhere{t, dir}
}

// run returns what the command said and its exit code.
func (e elsewhere) run(args ...string) (out string, code int) {
	e.Helper()
	command := func(isolation *syscall.SysProcAttr) (text string, err error) {
		var said bytes.Buffer
		c := exec.CommandContext(e.Context(), "./yeolda", args...)
		c.Dir, c.Env, c.SysProcAttr, c.Stdout, c.Stderr = e.dir, []string{asCommand + "=1"}, isolation, &said, &said
		err = c.Run()
		return said.String(), err
	}
	out, err := command(&syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	})
	ended := new(exec.ExitError)
	if err != nil && !errors.As(err, &ended) {
		e.Logf("with the network of this machine, because it permits no other: %v", err)
		out, err = command(nil)
	}
	if errors.As(err, &ended) {
		return out, ended.ExitCode()
	}
	if err != nil {
		e.Fatal(err)
	}
	return out, 0
}

// TestProofOnAnotherMachine verifies an exported proof with nothing but the program, the file and the public key.
func TestProofOnAnotherMachine(t *testing.T) {
	s := newShell(t).withDatabase()
	t.Setenv("YEOLDA_MODE", "demo")
	s.ok("branch", "apply", "-f", demoFile)
	exported, key := s.ok("proof", "--sign"), strings.TrimSpace(s.ok("proof", "key"))
	other := newElsewhere(t)
	for name, c := range map[string]struct {
		file, key string
		code      int
		says      string
	}{
		"as exported":             {exported, key, 0, "the signature is valid: 0 violations"},
		"as the endpoint answers": {`{"status":"SUCCESS","data":` + exported + `}`, key, 0, "the signature is valid: 0 violations"},
		"a changed report":        {strings.Replace(exported, `"violations":0`, `"violations":1`, 1), key, 1, "does not match"},
		"another key":             {exported, strings.Repeat("A", 43) + "=", 1, "does not match"},
		"no proof":                {`{}`, key, 1, "is not a proof"},
	} {
		if err := os.WriteFile(filepath.Join(other.dir, "proof.json"), []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code := other.run("proof", "verify", "proof.json", "--key", c.key); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit code %d, want %d: %s", name, code, c.code, out)
		}
	}
}
