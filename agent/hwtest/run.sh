#!/usr/bin/env bash
# Runs the hardware tests; `make hwtest` calls it. HWTEST_RUN limits them to some, like go test -run.
set -euo pipefail
cd "$(dirname "$0")"

missing=()
for program in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio gcc:gcc make:make xz:xz-utils; do
	command -v "${program%%:*}" >/dev/null || missing+=("${program##*:}")
done
if [ "${#missing[@]}" -gt 0 ]; then
	echo "the hardware tests need: apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi

kernel=${HWTEST_KERNEL:-${XDG_CACHE_HOME:-$HOME/.cache}/yeolda-hwtest}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/testdata"
./kernel.sh "$kernel" &
export CGO_ENABLED=0
go build -o "$root/bin/yeolda-agent" ../cmd/yeolda-agent
go test -c -tags hw -o "$root/bin/hwtest" .
wait $!
cp testdata/* "$root/testdata/"
cat >"$root/run" <<END
#!/bin/sh
exec hwtest -test.v -test.run '${HWTEST_RUN:-.}' -test.timeout 120s
END
chmod +x "$root/run"
./boot.sh "$kernel" "$root"
