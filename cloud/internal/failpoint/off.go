//go:build !failpoint

package failpoint

import "time"

// Hit does nothing.
func Hit(string) {}

// Shorten returns d.
func Shorten(d time.Duration) time.Duration { return d }
