#!/usr/bin/env bash
# boot.sh KERNEL DISK FILES prepare|run [PORT]: boots the machine from a disk. prepare unpacks the tar file FILES onto it, runs its
# /prepare.sh there as in an image that is being built, and ends; run starts Debian. PORT is that of the test on the host.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 disk=$2 files=$3 what=$4 port=${5:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root"/{bin,dev,proc,sys,tmp,modules,root}
cp "$(command -v busybox)" "$work/root/bin/busybox"
cp "$kernel"/*.ko "$kernel/order" "$work/root/modules/"
cp "$here/init" "$work/root/init"
(cd "$work/root" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$work/initramfs"
qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 768 -smp 2 -nodefaults -nographic \
	-kernel "$kernel/vmlinuz" -initrd "$work/initramfs" \
	-append "console=ttyS0 quiet loglevel=3 panic=1 net.ifnames=0 systemd.show_status=0 systemd.default_timeout_start_sec=300 yeolda.what=$what yeolda.port=$port" \
	-drive "file=$disk,format=raw,if=virtio" -drive "file=$files,format=raw,if=virtio,readonly=on" \
	-serial stdio -monitor none -netdev user,id=net -device virtio-net-pci,netdev=net,romfile= </dev/null
