//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"time"
)

// Variable names the failpoint at which the process ends; empty is none. Haste divides the pauses after which somebody
// else looks what became of an attempt.
const (
	Variable = "YEOLDA_FAILPOINT"
	Haste    = "YEOLDA_FAILPOINT_HASTE"
)

// exitCode is what a process killed by SIGKILL leaves behind.
const exitCode = 137

var armed = os.Getenv(Variable)

// Hit ends the process at once, with nothing flushed or closed, if name is the failpoint it is armed for.
func Hit(name string) {
	if name == armed {
		os.Exit(exitCode)
	}
}

// Shorten returns d divided by the haste of this run, so that a test need not wait for what it does not test.
func Shorten(d time.Duration) time.Duration {
	if haste, err := strconv.Atoi(os.Getenv(Haste)); err == nil && haste > 0 {
		return d / time.Duration(haste)
	}
	return d
}
