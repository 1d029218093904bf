package main

import (
	"fmt"
	"runtime"
)

// version is set by the linker (see the Makefile).
var version = "dev"

// versionCmd is `yeolda version`.
type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(p *program) error {
	fmt.Fprintf(p.out, "yeolda %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
