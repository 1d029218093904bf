#!/usr/bin/env bash
# Installs PostgreSQL's programs for the service's private server if they are missing. With YEOLDA_DATABASE_URL they are not
# needed.
set -euo pipefail

have_postgres() {
	[ -n "${YEOLDA_PG_BIN:-}" ] && [ -x "$YEOLDA_PG_BIN/initdb" ] && return
	compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return
	command -v initdb >/dev/null && command -v postgres >/dev/null && return
	command -v pg_config >/dev/null && [ -x "$(pg_config --bindir)/initdb" ]
}

if [ -n "${YEOLDA_DATABASE_URL:-}" ] || have_postgres; then exit 0; fi
if ! command -v apt-get >/dev/null; then
	echo "yeolda: install PostgreSQL 14 or newer with its server programs (initdb, postgres), or set YEOLDA_DATABASE_URL" >&2
	exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "yeolda: install the package postgresql as root: apt-get install postgresql" >&2; exit 1; }
	sudo=sudo
fi
echo "yeolda: installing the package postgresql (the service runs a private server of its own with it)" >&2
# Debian's package creates and starts a cluster on installation, which is not needed.
$sudo mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q >&2
$sudo apt-get install -y -q --no-install-recommends postgresql >&2
have_postgres || { echo "yeolda: the package postgresql did not bring initdb" >&2; exit 1; }
