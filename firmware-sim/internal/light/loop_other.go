//go:build !linux

package light

import (
	"context"
	"errors"
)

func (f *Fleet) run(context.Context) error { return errors.New("light: the fleet needs Linux (epoll)") }
