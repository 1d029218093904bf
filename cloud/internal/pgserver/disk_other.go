//go:build !linux && !darwin

package pgserver

import "errors"

func FreeSpace(string) (free, total uint64, err error) { return 0, 0, errors.ErrUnsupported }
