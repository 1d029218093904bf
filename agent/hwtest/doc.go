// Package hwtest runs the agent's own program on a real Linux kernel with simulated hardware: GPIO lines of gpio-sim, the
// LIRC loop-back, the soft watchdog. Fakes cannot show what matters about a lock relay: which levels the kernel drives, and
// for how long, while the program starts, works, is killed and starts again.
//
//	make hwtest ─► kernel.sh: Debian's kernel and modules ─► boot.sh: QEMU ─► init ─► this package's tests ─► yeolda-agent
//
// The tests need the build tag hw and run as the only thing in a virtual machine of their own.
package hwtest
