//go:build !linux

package keypad

import "time"

// KernelStart returns the present: other systems have no keypads.
func KernelStart() time.Time { return time.Now() }
