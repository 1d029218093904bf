//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"time"
)

// Variable names the failpoint at which the process ends; empty for none. Haste divides the delays after which another
// worker checks the outcome of an attempt.
const (
	Variable = "YEOLDA_FAILPOINT"
	Haste    = "YEOLDA_FAILPOINT_HASTE"
)

// exitCode is that of a process killed by SIGKILL.
const exitCode = 137

var armed = os.Getenv(Variable)

// Hit ends the process immediately, with nothing flushed or closed, if name is the armed failpoint.
func Hit(name string) {
	if name == armed {
		os.Exit(exitCode)
	}
}

// Shorten returns d divided by the haste of this run, so that a test need not wait for delays that it does not test.
func Shorten(d time.Duration) time.Duration {
	if haste, err := strconv.Atoi(os.Getenv(Haste)); err == nil && haste > 0 {
		return d / time.Duration(haste)
	}
	return d
}
