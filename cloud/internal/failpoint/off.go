//go:build !failpoint

package failpoint

import "time"

// Hit has no effect.
func Hit(string) {}

// Shorten returns d.
func Shorten(d time.Duration) time.Duration { return d }
