package world

import "syscall"

// dieWithParent makes the kernel kill a program when its parent dies.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
