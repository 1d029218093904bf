// Package debian runs the agent's package on a whole Debian system in QEMU: systemd, udev, dpkg, journald and the real package,
// with lines of gpio-sim and the LIRC loop-back. TestDebian plays the cloud, boots the machine, causes an accident and presses
// a button; the kernel's line shows whether the door has opened. TestRollout and TestSettings run the service itself on the host.
//
//	make debiantest ─► run.sh ─► root.sh: Debian's packages into an ext4 image, cached ─► this package's tests ─► boot.sh: QEMU
//
// The tests need the build tag debian.
package debian
