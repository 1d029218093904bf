//go:build unix && !linux

package pgserver

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// procAttr lets a child run as the account, in a process group of its own, so that Ctrl-C in the terminal reaches only
// this process.
func (a account) procAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential(), Setpgid: true}
}

// processesNamed lists the processes with name on their command line.
func processesNamed(name string) ([]int, error) {
	out, err := exec.Command("pgrep", "-f", name).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil, nil // none
	}
	if err != nil {
		return nil, fmt.Errorf("pgrep: %w", err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("pgrep: %w", err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
