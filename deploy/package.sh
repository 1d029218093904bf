#!/bin/sh
# package.sh OUT [VERSION]: builds the service's Debian packages (amd64, arm64) into OUT, reproducibly.
set -eu
cd "$(dirname "$0")/.."
out=$1
VERSION=${2:-$(deploy/version.sh)}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION SOURCE_DATE_EPOCH
for ARCH in amd64 arm64; do
	BIN=$out/deb/$ARCH
	export ARCH BIN
	mkdir -p "$BIN"
	CGO_ENABLED=0 GOARCH=$ARCH go build -tags nodynamic -trimpath -ldflags "-s -w -X main.version=$VERSION" -o "$BIN/yeolda" ./cloud/cmd/yeolda
	deploy/debdoc.sh yeolda "$BIN"
	go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0 package -f deploy/nfpm.yaml -p deb -t "$out/"
done
