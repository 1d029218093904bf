//go:build !linux

package pass

import "time"

var started = time.Now()

// System is the Machine that this program runs on. Other systems than Linux only run the simulator: a restart of the program
// counts as a restart of the machine.
type System struct{}

// Uptime implements Machine.
func (System) Uptime() (boot string, since time.Duration) {
	return started.Format(time.RFC3339Nano), time.Since(started)
}

// HardwareClock implements Machine.
func (System) HardwareClock() (seconds int64, ok bool) { return 0, false }
