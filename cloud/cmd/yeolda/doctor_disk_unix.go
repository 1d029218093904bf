//go:build linux || darwin

package main

import "syscall"

// freeSpace returns what is free for the service on the disk of a directory, and what the disk holds.
func freeSpace(dir string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}
