#!/usr/bin/env bash
# boot.sh KERNEL ROOT: boots a virtual machine of the kernel in KERNEL (see kernel.sh) with the files of ROOT, runs /run in
# it and ends with its exit code. The console is the output. No root, no KVM, no disk.
#
# Success needs two signals: a line on the console and the exit code of QEMU.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 root=$2 limit=${HWTEST_LIMIT:-300}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root"/{bin,dev,proc,sys,tmp,modules,etc}
cp "$(command -v busybox)" "$work/root/bin/busybox"
cp "$kernel"/*.ko "$kernel/order" "$work/root/modules/"
cp "$here/init" "$work/root/init"
cp -R "$root/." "$work/root/"
(cd "$work/root" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$work/initramfs"

set +e
timeout --foreground --kill-after=5 "$limit" qemu-system-x86_64 -accel tcg ${HWTEST_ICOUNT:+-icount "$HWTEST_ICOUNT"} -m 512 -smp 1 -nodefaults -no-reboot -nographic \
	-kernel "$kernel/vmlinuz" -initrd "$work/initramfs" -append "console=ttyS0 quiet loglevel=3 panic=-1" \
	-serial stdio -monitor none -netdev user,id=net -device virtio-net-pci,netdev=net,romfile= \
	-device isa-debug-exit,iobase=0xf4,iosize=0x04 </dev/null |
	sed -u 's/\r$//' | tee "$work/console"
left=${PIPESTATUS[0]}
set -e
said=$(sed -n 's/^the machine ends with //p' "$work/console")
# isa-debug-exit leaves by 2n+1 for the n that init writes: 16, or 17 after a failure.
if [ "$left" = 33 ] && [ "$said" = 0 ]; then exit 0; fi
if [ "$left" = 35 ] && [ -n "$said" ] && [ "$said" != 0 ]; then exit "$said"; fi
echo "the machine did not end by itself: QEMU left with $left, the console said '$said'" >&2
exit 125
