#!/usr/bin/env bash
# Builds Caddy, of the version that compose.yaml names, and runs the attacks of SECURITY.md through it with the shipped Caddyfile.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$(sed -n 's/.*image: caddy:\([0-9.]*\)@.*/\1/p' deploy/compose.yaml)
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
(
	cd "$tools"
	go mod init tools
	go get "github.com/caddyserver/caddy/v2/cmd/caddy@v$version"
	go build -o caddy github.com/caddyserver/caddy/v2/cmd/caddy
) >"$tools/log" 2>&1 || { cat "$tools/log" >&2; exit 1; }
go test -count=1 ./cloud/internal/attack -run TestAttacks -caddy "$tools/caddy"
