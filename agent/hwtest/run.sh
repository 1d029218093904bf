#!/usr/bin/env bash
# Runs the hardware tests; `make hwtest` calls it. HWTEST_RUN limits them to some, like go test -run. HWTEST_PRESSES is the number of
# samples of the latency of a keypad; more than 10 need HWTEST_TIMEOUT and HWTEST_LIMIT.
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
export CGO_ENABLED=0
root=$(mktemp -d)
# shellcheck disable=SC2046 # a list of words
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$root" "$root.later"' EXIT
mkdir -p "$root/bin" "$root/testdata" "$root.later"

./kernel.sh "$HWTEST_KERNEL" &
fetching=$!
go build -o "$root/bin/yeolda-agent" ../cmd/yeolda-agent
go test -c -tags hw,nodynamic -o "$root/bin/hwtest" .
wait $fetching
cp testdata/* ../../deploy/agent/preinst ../../deploy/agent/trial "$root/testdata/"
# machine FLAG...: boots the machine for the tests that the flags choose. HWTEST_ICOUNT=shift=0 makes its clock count instructions,
# a billion a second: it stops whenever the host has no time for the machine, so a loaded host stretches no burst of edges.
machine() {
	printf '#!/bin/sh\nexport HWTEST_PRESSES=%s\nexec hwtest -test.v %s -test.timeout %s\n' "${HWTEST_PRESSES:-}" "$*" "${HWTEST_TIMEOUT:-180s}" >"$root/run"
	chmod +x "$root/run"
	./boot.sh "$HWTEST_KERNEL" "$root"
}
if [ -n "${HWTEST_RUN:-}" ]; then
	case $HWTEST_RUN in *Keypad*) export HWTEST_ICOUNT=shift=0 ;; esac
	machine "-test.run '$HWTEST_RUN'"
	exit
fi

# The processors of the Pis, emulated: alignment and sizes, not speed.
emulated="./ir ./sensor ./internal/config ./internal/door ./internal/lirc ./internal/rpi"
emulators=()
for arch in arm64:aarch64 arm:arm; do
	if command -v "qemu-${arch#*:}-static" >/dev/null; then
		emulators+=("${arch%:*}:qemu-${arch#*:}-static")
	else
		echo "=== ${arch%:*} not run: apt-get install --no-install-recommends qemu-user-static"
	fi
done

# What comes after the machine is compiled while it runs: its tests wait most of the time.
compile() {
	(cd ../../firmware-sim && go test -c -tags hw,nodynamic -o "$root.later/e2e.test" ./e2e && go build ../cloud/cmd/... ./cmd/yeolda-sim)
	for pair in "${emulators[@]}"; do
		export GOARCH=${pair%%:*} GOARM=6
		mkdir -p "$root.later/$GOARCH"
		# shellcheck disable=SC2086 # a list of words
		(cd .. && go test -c -o "$root.later/$GOARCH/" $emulated && go build -o "$root.later/$GOARCH/" ./cmd/yeolda-agent)
	done
}
compile >"$root.later/log" 2>&1 &
compiling=$!
machine -test.skip Keypad
HWTEST_ICOUNT=shift=0 machine -test.run Keypad
wait $compiling || { cat "$root.later/log"; exit 1; }

echo '=== the whole way: API, broker, agent, kernel line'
(cd ../../firmware-sim/e2e && "$root.later/e2e.test" -test.v -test.run '^TestWholeWay$')

# emulate ARCH:EMULATOR: without the test that simulates hours of a faulty line, which takes minutes here.
emulate() {
	local arch=${1%%:*} emulator=${1#*:} package
	for package in $emulated; do
		(cd "../$package" && "$emulator" "$root.later/$arch/$(basename "$package").test" -test.skip '^TestLogVolume$')
	done
	"$emulator" "$root.later/$arch/yeolda-agent" version
}
processes=()
for pair in "${emulators[@]}"; do
	emulate "$pair" >"$root.later/${pair%%:*}.log" 2>&1 &
	processes+=($!)
done
result=0
for i in "${!emulators[@]}"; do
	wait "${processes[$i]}" || result=1
	echo "=== ${emulators[$i]%%:*}"
	cat "$root.later/${emulators[$i]%%:*}.log"
done
exit $result
