package pgserver

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// procAttr lets a child run as the account, in a process group of its own, so that Ctrl-C in the terminal reaches only
// this process. The kernel stops the child when the thread that started it ends.
func (a account) procAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential(), Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// processesNamed lists the postgres processes with name on their command line.
func processesNamed(name string) ([]int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range dirs {
		// It has ended meanwhile.
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if string(bytes.TrimSpace(comm)) != "postgres" {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if bytes.Contains(cmdline, []byte(name)) {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
