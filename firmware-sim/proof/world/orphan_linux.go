package world

import "syscall"

// dieWithParent has the kernel end a program when the one that started it is gone, however that went.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
