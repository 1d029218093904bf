#!/bin/sh
# Creates the secrets of a new server under compose/secrets and a folder for backups. Existing files remain.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets backups
chmod 711 secrets
make() {
	[ -s "secrets/$1" ] && return
	printf '%s' "$2" >"secrets/$1"
	chmod 444 "secrets/$1" # the containers have other users; the folder cannot be listed
	echo "made secrets/$1"
}
random() { openssl rand "$@" | tr -d '\n'; }
make postgres_password "$(random -hex 24)"
make service_password "$(random -hex 24)"
make database_url "postgres://yeolda_service:$(cat secrets/service_password)@postgres:5432/yeolda?sslmode=disable"
# A database of an earlier release has one role for both; an empty file keeps it.
if grep -q '//yeolda:' secrets/database_url; then
	[ -e secrets/database_owner_url ] || { : >secrets/database_owner_url && chmod 444 secrets/database_owner_url; }
else
	make database_owner_url "postgres://yeolda:$(cat secrets/postgres_password)@postgres:5432/yeolda?sslmode=disable"
fi
make encryption_key "$(random -base64 32)"
make grant_key "$(random -base64 32)"
make grafana_password "$(random -hex 12)"
chown 999:999 backups 2>/dev/null || chmod 777 backups # postgres in its image
[ -e yeolda.env ] || { cp yeolda.env.example yeolda.env && chmod 600 yeolda.env && echo "made yeolda.env: fill it in"; }
echo "keep a copy of secrets/encryption_key and secrets/grant_key elsewhere: no backup contains them"
