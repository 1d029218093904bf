//go:build !linux && !darwin

package pgserver

import "errors"

// FreeSpace returns errors.ErrUnsupported: this system has no statfs(2).
func FreeSpace(string) (free, total uint64, err error) { return 0, 0, errors.ErrUnsupported }
