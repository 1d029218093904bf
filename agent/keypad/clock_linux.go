package keypad

import (
	"time"

	"golang.org/x/sys/unix"
)

// KernelStart returns when the kernel's monotonic clock was zero: with the time of an event added, it is the time of the event. It is
// exact, because the process measures times by the same clock.
func KernelStart() time.Time {
	for {
		before := time.Now()
		var since unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &since); err != nil {
			panic(err) // the clock of every kernel
		}
		if time.Since(before) < time.Millisecond { // otherwise the process did not run in between
			return before.Add(-time.Duration(since.Nano()))
		}
	}
}
