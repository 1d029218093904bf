#!/usr/bin/env bash
# Reads compose.yaml, and kubernetes/ as kustomize writes it, with the libraries of Docker Compose and Kubernetes. Needs kubectl;
# opens no connection to a cluster.
set -euo pipefail
cd "$(dirname "$0")"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
cp validate/main.go "$tools"
cp -r compose.yaml compose "$tools"
sh "$tools/compose/prepare.sh" >/dev/null # the files of secrets and settings that compose.yaml names
(
	cd "$tools"
	go mod init tools
	go get github.com/compose-spec/compose-go/v2/cli@v2.16.2 k8s.io/client-go/kubernetes/scheme@v0.34.1 k8s.io/apimachinery/pkg/runtime/serializer/json@v0.34.1
	go build -o validate main.go
) >"$tools/log" 2>&1 || { cat "$tools/log" >&2; exit 1; }
kubectl kustomize kubernetes | "$tools/validate" "$tools/compose.yaml"
