#!/usr/bin/env bash
# Runs the agent's package on Debian in QEMU; `make debiantest` and `make hwtest` call it. HWTEST_ACCIDENT and HWTEST_REST are described at TestDebian.
set -euo pipefail
cd "$(dirname "$0")"
missing=()
for program in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio mke2fs:e2fsprogs perl:perl gcc:gcc make:make xz:xz-utils; do
	command -v "${program%%:*}" >/dev/null || missing+=("${program##*:}")
done
if [ "${#missing[@]}" -gt 0 ]; then
	echo "the Debian machine needs: apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi
export HWTEST_KERNEL=${HWTEST_KERNEL:-${XDG_CACHE_HOME:-$HOME/.cache}/yeolda-hwtest-debian}
export HWTEST_MODULES="virtio_blk crc32c_generic ext4"
../kernel.sh "$HWTEST_KERNEL"
./root.sh "$HWTEST_KERNEL"
exec go test -tags debian -count=1 -v -timeout "${HWTEST_TIMEOUT:-60m}" .
