#!/usr/bin/env bash
# Checks the model of the door exchange over all interleavings, and then plants each of its faults and expects an error.
# Needs spin and a C compiler.
set -euo pipefail
model=$(cd "$(dirname "$0")" && pwd)/door.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# verify PLANT: runs the verifier; its report is in the file out.
verify() {
	spin -DPLANT="$1" -a "$model" >/dev/null
	cc -O1 -w -DSAFETY -o pan pan.c
	./pan -m1000000 -w22 -E >out || true
}

verify 0
grep -E 'errors:|states, stored' out
if ! grep -q 'errors: 0' out || grep -q 'max search depth too small\|out of memory' out; then
	cat out
	exit 1
fi
plants=$(awk '$1 == "#define" && $2 == "PLANTS" {print $3}' "$model")
for plant in $(seq "$plants"); do
	verify "$plant"
	name=$(awk -v n="$plant" '$1 == "#define" && $3 == n && $2 ~ /_/ {print $2}' "$model")
	grep -q 'errors: 1' out || { echo "planted $name: not found"; cat out; exit 1; }
	echo "planted $name: found, $(grep -oE 'assertion violated .*' out | head -1)"
done
