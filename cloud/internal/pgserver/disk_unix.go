//go:build linux || darwin

package pgserver

import "syscall"

// FreeSpace returns the bytes that are available on the disk of a directory, and the size of the disk.
func FreeSpace(dir string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}
