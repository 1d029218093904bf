//go:build failpoint

package failpoint

import "os"

// Variable names the failpoint at which the process ends; empty is none.
const Variable = "YEOLDA_FAILPOINT"

// exitCode is what a process killed by SIGKILL leaves behind.
const exitCode = 137

var armed = os.Getenv(Variable)

// Hit ends the process at once, with nothing flushed or closed, if name is the failpoint it is armed for.
func Hit(name string) {
	if name == armed {
		os.Exit(exitCode)
	}
}
