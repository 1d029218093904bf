#!/bin/sh
# version.sh: prints the version of the packages of this checkout; that of the service and of the agent are the same, so the service
# finds the package of the agent that fits. Tag v1.2.3 is version 1.2.3. Commits after a tag sort after it; without any tag, the
# version sorts before all releases.
set -eu
cd "$(dirname "$0")/.."
described=$(git describe --tags --match 'v[0-9]*' 2>/dev/null || true)
if [ -n "$described" ]; then
	echo "$described" | sed 's/^v//; s/-\([0-9]*\)-g/+\1.g/'
else
	echo "0.0.0~git$(git log -1 --format=%cd.%h --date=format:%Y%m%d%H%M)"
fi
