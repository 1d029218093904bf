// Package hwtest runs the agent's program on a real Linux kernel with simulated hardware: GPIO lines of gpio-sim, the
// LIRC loop-back, the soft watchdog. Fakes cannot show which levels the kernel drives, and for how long, while the
// program starts, works, is killed and restarts.
//
//	make hwtest ─► kernel.sh: Debian's kernel and modules ─► boot.sh: QEMU ─► init ─► this package's tests ─► yeolda-agent
//
// The tests need the build tag hw and run alone in their own virtual machine.
package hwtest
