#!/usr/bin/env bash
# Runs what others have written against a running system: h2spec, which comes as a Go module, and a browser's EventSource.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
(
	cd "$tools"
	go mod init tools
	go get github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible
	go build -o h2spec github.com/summerwind/h2spec/cmd/h2spec
) >"$tools/log" 2>&1 || { cat "$tools/log" >&2; exit 1; }
H2SPEC=$tools/h2spec go test ./firmware-sim/e2e -count 1 -run 'TestHTTP2|TestEventSource' -v
