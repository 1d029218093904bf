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

export HWTEST_KERNEL=${HWTEST_KERNEL:-${XDG_CACHE_HOME:-$HOME/.cache}/yeolda-hwtest}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/testdata"
./kernel.sh "$HWTEST_KERNEL" &
fetching=$!
export CGO_ENABLED=0
go build -o "$root/bin/yeolda-agent" ../cmd/yeolda-agent
go test -c -tags hw -o "$root/bin/hwtest" .
wait $fetching
cp testdata/* "$root/testdata/"
cat >"$root/run" <<END
#!/bin/sh
exec hwtest -test.v -test.run '${HWTEST_RUN:-.}' -test.timeout 120s
END
chmod +x "$root/run"
./boot.sh "$HWTEST_KERNEL" "$root"
[ -z "${HWTEST_RUN:-}" ] || exit 0

echo '=== the whole way: API, broker, agent, kernel line'
(cd ../../firmware-sim && go test -count 1 -tags hw -run '^TestWholeWay$' ./e2e)

# The processors of the Pis, emulated: alignment and sizes, not speed.
for arch in arm64:aarch64 arm:arm; do
	emulator=qemu-${arch#*:}-static
	if ! command -v "$emulator" >/dev/null; then
		echo "=== ${arch%:*} not run: apt-get install --no-install-recommends qemu-user-static"
		continue
	fi
	echo "=== ${arch%:*}"
	(cd .. && GOARCH=${arch%:*} GOARM=6 go test -exec "$emulator" ./ir ./sensor ./internal/config ./internal/door ./internal/lirc ./internal/rpi)
	GOARCH=${arch%:*} GOARM=6 go build -o "$root/yeolda-agent" ../cmd/yeolda-agent
	"$emulator" "$root/yeolda-agent" version
done
