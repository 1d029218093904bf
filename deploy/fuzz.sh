#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the workspace for TIME.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
grep -rlE '^func Fuzz' --include='*_test.go' protocol agent cloud firmware-sim | while read -r file; do
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/func //' | while read -r target; do
		echo "$target in $(dirname "$file")"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")" </dev/null
	done
done
