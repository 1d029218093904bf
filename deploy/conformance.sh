#!/usr/bin/env bash
# Runs conformance suites against a running system: h2spec (a Go module), a browser's EventSource, and the EventSource of
# Node programs (npm). Suites without their program are skipped with a message. Eclipse Paho's MQTT suite is in no package; a
# test of our own covers its cases.
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
export H2SPEC=$tools/h2spec
if command -v npm >/dev/null; then
	mkdir "$tools/node"
	npm install --silent --no-audit --no-fund --prefix "$tools/node" eventsource@4.0.0 >/dev/null
	export NODE_EVENTSOURCE=$tools/node
fi
go test ./cloud/internal/broker -count 1 -run TestInteroperabilityCases
go test ./firmware-sim/e2e -count 1 -run '^(TestHTTP2|TestEventSource|TestEventSourceOfNode)$' -v | grep -E '^(---|ok|FAIL|PASS|panic)|_test\.go:[0-9]+:'
