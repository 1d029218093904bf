#!/usr/bin/env bash
# Checks the model of the door exchange over all interleavings; needs spin and a C compiler.
set -euo pipefail
model=$(cd "$(dirname "$0")" && pwd)/door.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
spin -a "$model" >/dev/null
cc -O2 -w -DSAFETY -o pan pan.c
./pan -m1000000 -E >out || true
grep -E 'errors:|states, stored' out
grep -q 'errors: 0' out || { cat out; exit 1; }
