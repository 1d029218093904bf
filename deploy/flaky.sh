#!/usr/bin/env bash
# Runs the tests of each package many times, alone and beside load, and prints the failures per package.
#
#   RUNS     runs alone (default 50)
#   LOADED   runs beside one busy loop per processor (default 10)
#   RACE     1: also with the race detector, LOADED times
#   PACKAGES packages (default: all of the workspace)
#   RUN      only tests that match
#
# The output of each failed run stays in bin/flaky/. Exits with 1 if a run failed.
set -uo pipefail
cd "$(dirname "$0")/.."
runs=${RUNS:-50} loaded=${LOADED:-10} race=${RACE:-} out=$PWD/bin/flaky
rm -rf "$out" && mkdir -p "$out"
work=$(mktemp -d)
busy=()
stop_load() { [ "${#busy[@]}" -eq 0 ] || { kill "${busy[@]}"; wait "${busy[@]}"; } 2>/dev/null; busy=(); }
start_load() { for _ in $(seq "$(nproc)"); do (while :; do :; done) & busy+=($!); done; }
trap 'stop_load; rm -rf "$work"' EXIT

failures=0
# repeat PACKAGE DIRECTORY WHAT BINARY COUNT
repeat() {
	local failed=0 name log
	name=$(tr '/' '_' <<<"${1#github.com/yeolda/yeolda/}")
	for n in $(seq "$5"); do
		log=$out/$name.$3.$n
		if (cd "$2" && "$4" -test.count=1 -test.timeout=15m ${RUN:+-test.run="$RUN"}) >"$log" 2>&1; then rm "$log"; else failed=$((failed + 1)); fi
	done
	printf '%-6s %-60s %d of %d failed %s\n' "$([ "$failed" -eq 0 ] && echo ok || echo FAIL)" "${1#github.com/yeolda/yeolda/}" "$failed" "$5" "$3"
	failures=$((failures + failed))
}

packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ${PACKAGES:-work}) || exit 1
while read -r package directory; do
	[ -n "$package" ] || continue
	go test -c -o "$work/test" "$package" || { failures=$((failures + 1)); continue; }
	repeat "$package" "$directory" alone "$work/test" "$runs"
	start_load
	repeat "$package" "$directory" loaded "$work/test" "$loaded"
	stop_load
	if [ -n "$race" ]; then
		CGO_ENABLED=1 go test -race -c -o "$work/race" "$package" || { failures=$((failures + 1)); continue; }
		repeat "$package" "$directory" race "$work/race" "$loaded"
	fi
	rm -f "$work"/*
done <<<"$packages"
echo "$failures failed runs"
[ "$failures" -eq 0 ]
