#!/bin/sh
# Runs once, when the database is created: the role of the service. The service, as the owner, grants its rights.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$(cat /run/secrets/service_password)" <<'SQL'
create role yeolda_service login password :'password';
SQL
