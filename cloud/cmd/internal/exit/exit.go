// Package exit carries exit codes out of the parser of commands, so that a program is a function that returns its code.
package exit

import (
	"fmt"
	"io"
	"runtime/debug"
)

type code int

// With ends the program with a code. The parser calls it after --help; Recover must be deferred.
func With(n int) { panic(code(n)) }

// Recover sets the code with which the program was ended. A command that panicked must not look like success: the panic is written to
// errOut, and the code is failed.
func Recover(program string, failed int, errOut io.Writer, result *int) {
	switch found := recover().(type) {
	case nil:
	case code:
		*result = int(found)
	default:
		fmt.Fprintf(errOut, "%s: internal error: %v\n%s", program, found, debug.Stack())
		*result = failed
	}
}
