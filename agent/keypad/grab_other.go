//go:build !linux

package keypad

import (
	"errors"
	"io"
)

func grab(string) (io.ReadCloser, error) { return nil, errors.ErrUnsupported }
