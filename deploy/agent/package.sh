#!/usr/bin/env bash
# package.sh DIR: builds the agent's packages for Pis (arm64, armhf) and PCs (amd64) in DIR. VERSION and TARGETS limit it to a
# version and to some of the targets.
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

VERSION=${VERSION:-$(../version.sh)}
export VERSION

# The public keys whose packages the agents install as updates; see release-keys.
export RELEASE_KEYS=${YEOLDA_RELEASE_KEYS:-release-keys}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
../debdoc.sh yeolda-agent "$stage"
for target in ${TARGETS:-arm64:arm64 arm6:arm amd64:amd64}; do
	export ARCH=${target%:*} STAGE=$stage
	CGO_ENABLED=0 GOOS=linux GOARCH=${target#*:} GOARM=6 \
		go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o "$stage/yeolda-agent" ../../agent/cmd/yeolda-agent
	go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0 package --packager deb --target "$out"
done
