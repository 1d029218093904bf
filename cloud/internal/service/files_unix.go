//go:build unix

package service

import "syscall"

// openFiles returns how many files this process may open. Go has raised the soft limit to the hard one at the start.
func openFiles() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return defaultFiles
	}
	return int(min(files.Cur, 1<<20)) //nolint:gosec // bounded
}
