#!/usr/bin/env bash
# The three database servers of patroni.yml on this machine, each in a network namespace of its own (10.0.0.11 to .13) with etcd,
# Patroni and PostgreSQL. Needs root and Debian's packages patroni, etcd-server, postgresql-15, iproute2, openssl.
#
#   trial.sh up DIR          starts them; DIR receives data, logs, certificates and a file with the addresses of the database
#   trial.sh leader          prints the number of the primary, 1 to 3
#   trial.sh whole           succeeds if one server is the primary and two follow it
#   trial.sh kill DIR N      ends every process of server N with SIGKILL, as if its power failed; start DIR N starts it again
#   trial.sh postgres DIR N  ends PostgreSQL of server N with SIGKILL; Patroni stays
#   trial.sh freeze N        stops every process of server N with SIGSTOP; thaw N continues them
#   trial.sh cut N           takes server N off the network; join N connects it again
#   trial.sh down DIR        ends everything and removes the namespaces
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
space() { echo "yeolda-db-$1"; }
inside() { local n=$1; shift; ip netns exec "$(space "$n")" "$@"; }
as_postgres() { runuser -u postgres -- "$@"; }

network() {
	ip link add yeolda-db type bridge
	ip addr add 10.0.0.1/24 dev yeolda-db
	ip link set yeolda-db up
	for n in 1 2 3; do
		ip netns add "$(space "$n")"
		ip link add "yeolda-db-$n" type veth peer name eth0 netns "$(space "$n")"
		ip link set "yeolda-db-$n" master yeolda-db up
		inside "$n" ip addr add "10.0.0.1$n/24" dev eth0
		inside "$n" ip link set eth0 up
		inside "$n" ip link set lo up
	done
}

# certificates: an authority, and a certificate of each server for its address.
certificates() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=trial -keyout "$1/ca.key" -out "$1/ca.crt" 2>/dev/null
	for n in 1 2 3; do
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=db-$n" -keyout "$1/server-$n.key" -out "$1/server-$n.csr" 2>/dev/null
		openssl x509 -req -days 2 -in "$1/server-$n.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial \
			-extfile <(echo "subjectAltName=IP:10.0.0.1$n") -out "$1/server-$n.crt" 2>/dev/null
	done
}

# configuration DIR N: patroni.yml for server N. What differs from the file: name, addresses, folders, no watchdog device.
configuration() {
	sed -e "s/^name: db-1/name: db-$2/" -e "/listen:\|connect_address:/s/10\.0\.0\.11/10.0.0.1$2/" \
		-e "s|/var/lib/postgresql/15/yeolda|$1/data-$2|" -e "s|/var/lib/postgresql/.pgpass_patroni|$1/pgpass-$2|" \
		-e "s|/etc/postgresql/yeolda/server|$1/server-$2|" -e "s|/srv/wal|$1/wal|g" -e 's/^watchdog:.*/watchdog: {mode: "off"}/' \
		-e "s|^  parameters:|&\n    unix_socket_directories: '$1/socket-$2'|" "$here/patroni.yml"
}

start() {
	local dir=$1 n=$2 members=db-1=http://10.0.0.11:2380,db-2=http://10.0.0.12:2380,db-3=http://10.0.0.13:2380
	inside "$n" runuser -u postgres -- etcd --enable-v2 --name "db-$n" --data-dir "$dir/etcd-$n" --initial-cluster "$members" --initial-cluster-state new \
		--listen-peer-urls "http://10.0.0.1$n:2380" --initial-advertise-peer-urls "http://10.0.0.1$n:2380" \
		--listen-client-urls "http://10.0.0.1$n:2379" --advertise-client-urls "http://10.0.0.1$n:2379" </dev/null >>"$dir/etcd-$n.log" 2>&1 &
	inside "$n" runuser -u postgres -- patroni "$dir/patroni-$n.yml" </dev/null >>"$dir/patroni-$n.log" 2>&1 &
}

leader() {
	for n in 1 2 3; do
		if [ "$(curl -s -m 1 -o /dev/null -w '%{http_code}' "http://10.0.0.1$n:8008/primary")" = 200 ]; then echo "$n"; return; fi
	done
	return 1
}

whole() {
	local n leaders=0 followers=0
	for n in 1 2 3; do
		case $(curl -s -m 1 "http://10.0.0.1$n:8008/patroni" | tr -d ' ') in
		*'"state":"running","'*'"role":"master"'*) leaders=$((leaders + 1)) ;;
		*'"state":"running","'*'"role":"replica"'*) followers=$((followers + 1)) ;;
		esac
	done
	[ "$leaders" = 1 ] && [ "$followers" = 2 ] || return 1
	n=$(leader) || return 1
	# Both follow the primary, and one of them confirms commits.
	[ "$(curl -s -m 1 "http://10.0.0.1$n:8008/patroni" | grep -o '"state": *"streaming"' | wc -l)" = 2 ]
}

await() {
	for _ in $(seq 120); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 1
	done
	echo "not within two minutes: $*" >&2
	return 1
}

up() {
	local dir=$1
	mkdir -p "$dir/wal"
	network
	certificates "$dir"
	for n in 1 2 3; do
		configuration "$dir" "$n" >"$dir/patroni-$n.yml"
		mkdir -p "$dir/socket-$n"
	done
	chown -R postgres: "$dir"
	chmod 755 "$dir"
	chmod 600 "$dir"/*.key
	for n in 1 2 3; do start "$dir" "$n"; done
	await whole
	# As in deploy/README.md, Roles of the database.
	local owner=trial-owner service=trial-service sql
	for sql in "create role yeolda login password '$owner'" "create role yeolda_service login password '$service'" 'create database yeolda owner yeolda'; do
		n=$(leader)
		PGPASSWORD=CHANGE-ME-1 inside "$n" psql -qX "host=10.0.0.1$n user=postgres dbname=postgres" -c "$sql"
	done
	local at='10.0.0.11,10.0.0.12,10.0.0.13/yeolda?target_session_attrs=read-write&sslmode=verify-full&sslrootcert='$dir/ca.crt
	printf 'YEOLDA_DATABASE_OWNER_URL=postgres://yeolda:%s@%s\nYEOLDA_DATABASE_URL=postgres://yeolda_service:%s@%s\n' "$owner" "$at" "$service" "$at" >"$dir/database.env"
}

signal() {
	local pids
	pids=$(ip netns pids "$(space "$2")")
	[ -z "$pids" ] || kill "-$1" $pids 2>/dev/null || true
}

down() {
	for n in 1 2 3; do
		signal CONT "$n"
		signal KILL "$n"
	done
	sleep 1
	for n in 1 2 3; do ip netns del "$(space "$n")" 2>/dev/null || true; done
	ip link del yeolda-db 2>/dev/null || true
}

case ${1:-} in
up) up "$2" ;;
leader) leader ;;
whole) whole ;;
start) start "$2" "$3" ;;
kill) signal KILL "$3" ;;
postgres) for pid in $(ip netns pids "$(space "$3")"); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != postgres ] || kill -KILL "$pid" 2>/dev/null || true; done ;;
freeze) signal STOP "$2" ;;
thaw) signal CONT "$2" ;;
cut) ip link set "yeolda-db-$2" down ;;
join) ip link set "yeolda-db-$2" up ;;
down) down ;;
*) sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2 ;;
esac
