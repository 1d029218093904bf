#!/bin/sh
# debdoc.sh PACKAGE DIR: writes what Debian requires beside a program into DIR, reproducibly: changelog.gz and PACKAGE.8.gz. VERSION is
# that of the package.
set -eu
cd "$(dirname "$0")/.."
{
	printf '%s (%s) unstable; urgency=medium\n\n' "$1" "$VERSION"
	printf '  * The changes are in CHANGELOG.md of the sources.\n\n'
	printf ' -- Yeolda maintainers <maintainers@yeolda.example>  %s\n' "$(LC_ALL=C TZ=UTC git log -1 --format=%cd --date='format-local:%a, %d %b %Y %H:%M:%S +0000')"
} | gzip -9n >"$2/changelog.gz"
gzip -9nc "deploy/man/$1.8" >"$2/$1.8.gz"
