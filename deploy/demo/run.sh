#!/usr/bin/env bash
# Starts the whole system with demo data: sandbox (payments, messages), service, simulated branches.
# `make run` calls it. It uses every YEOLDA_ variable, so that two stacks run side by side on other
# ports and data directories, and leaves no process behind when it ends.
set -euo pipefail
# A process started in the background ignores Ctrl-C, and a shell cannot change that for itself.
if [ -n "$(trap -p INT)" ] && env --default-signal=INT true 2>/dev/null; then
	exec env --default-signal=INT "$BASH" "$0" "$@"
fi
cd "$(dirname "$0")/../.."

export YEOLDA_MODE=${YEOLDA_MODE:-demo}
export YEOLDA_HTTP_ADDR=${YEOLDA_HTTP_ADDR:-127.0.0.1:8080}
export YEOLDA_MQTT_ADDR=${YEOLDA_MQTT_ADDR:-127.0.0.1:1883}
export YEOLDA_SANDBOX_ADDR=${YEOLDA_SANDBOX_ADDR:-127.0.0.1:8090}
export YEOLDA_SIM_ADDR=${YEOLDA_SIM_ADDR:-127.0.0.1:8070}
# reachable ADDR: the address at which this machine reaches a listener on ADDR. It has no name of a host, because the stage shares
# the cookies of one host.
reachable() { sed -E 's/^(\[::\]|0\.0\.0\.0|localhost)?:/127.0.0.1:/' <<<"$1"; }
service_at=$(reachable "$YEOLDA_HTTP_ADDR") sandbox_at=$(reachable "$YEOLDA_SANDBOX_ADDR") simulator_at=$(reachable "$YEOLDA_SIM_ADDR")
export YEOLDA_STAGE_ORIGIN=${YEOLDA_STAGE_ORIGIN-http://$simulator_at} # shows the pages in frames
export YEOLDA_DATA_DIR=${YEOLDA_DATA_DIR:-./data}
export YEOLDA_STEP_UP_AFTER=${YEOLDA_STEP_UP_AFTER:-0s}
export YEOLDA_WEBHOOK_ALLOW=${YEOLDA_WEBHOOK_ALLOW-127.0.0.0/8} # receivers on this machine
# Company information that the law requires on a shop's pages; all of it is made up.
export YEOLDA_LEGAL_COMPANY=${YEOLDA_LEGAL_COMPANY:-주식회사 열다 (데모)}
export YEOLDA_LEGAL_REPRESENTATIVE=${YEOLDA_LEGAL_REPRESENTATIVE:-홍길동}
export YEOLDA_LEGAL_ADDRESS=${YEOLDA_LEGAL_ADDRESS:-서울특별시 강남구 가상대로 123}
export YEOLDA_LEGAL_PHONE=${YEOLDA_LEGAL_PHONE:-02-0000-1000}
export YEOLDA_LEGAL_EMAIL=${YEOLDA_LEGAL_EMAIL:-help@yeolda.example}
export YEOLDA_LEGAL_BUSINESS_NUMBER=${YEOLDA_LEGAL_BUSINESS_NUMBER:-000-00-00000}
export YEOLDA_LEGAL_MAIL_ORDER_NUMBER=${YEOLDA_LEGAL_MAIL_ORDER_NUMBER:-제2026-데모-00000호}
export YEOLDA_LEGAL_HOSTING_PROVIDER=${YEOLDA_LEGAL_HOSTING_PROVIDER:-열다 데모}
mkdir -p "$YEOLDA_DATA_DIR"

deploy/demo/install.sh

ready=$(mktemp -d)
declare -A pid=() command=()
stop() {
	trap - EXIT INT TERM HUP
	# The simulator first, the service last: agents disconnect from a broker that still listens.
	for name in simulator service sandbox; do [ -n "${pid[$name]:-}" ] && kill -TERM "${pid[$name]}" 2>/dev/null || true; done
	wait || true
	rm -rf "$ready"
}
trap stop EXIT
trap 'exit 0' INT TERM HUP

# start NAME COMMAND...: runs a program in the background and waits until it is ready.
start() {
	local name=$1
	command[$name]=${*:2}
	rm -f "$ready/$name"
	"${@:2}" --ready-file "$ready/$name" &
	pid[$name]=$!
	until [ -s "$ready/$name" ]; do
		if ! kill -0 "${pid[$name]}" 2>/dev/null; then
			echo "yeolda: the $name did not start; its messages are above" >&2
			exit 1
		fi
		sleep 0.05
	done
}

# The sandbox keeps payments as long as the service keeps reservations.
export YEOLDA_SANDBOX_STATE_FILE=${YEOLDA_SANDBOX_STATE_FILE:-$YEOLDA_DATA_DIR/sandbox.json}

# The sandbox chooses the port for mail unless one is set.
YEOLDA_SANDBOX_SMTP_ADDR=${YEOLDA_SANDBOX_SMTP_ADDR:-127.0.0.1:0} start sandbox bin/yeolda-sandbox
if [ -z "${YEOLDA_SANDBOX_SMTP_ADDR:-}" ]; then
	YEOLDA_SANDBOX_SMTP_ADDR=$(sed -n 's/.*"smtp" *: *"\([^"]*\)".*/\1/p' "$ready/sandbox")
	export YEOLDA_SANDBOX_SMTP_ADDR
fi
bin/yeolda branch apply -f deploy/demo/branches.yaml
start service bin/yeolda serve
start simulator bin/yeolda-sim

cat <<END

  Yeolda is running.

  Stage       ${YEOLDA_STAGE_ORIGIN:-http://$simulator_at}/stage      (guest, console, doors and messages side by side)
  API         http://$service_at/api      (pages at http://$service_at/)
  Sandbox     http://$sandbox_at/      (payments, messages, partner channel)
  Simulator   http://$simulator_at/      (doors, air conditioners, sensors, faults)
  Accounts    hq / hq-demo (all branches), gangnam-manager / gangnam-demo

  Ctrl-C stops everything.

END
# A program that ends unexpectedly is started again, as a service manager would.
while true; do
	wait -n || true
	for name in "${!pid[@]}"; do
		kill -0 "${pid[$name]}" 2>/dev/null && continue
		echo "yeolda: the $name has ended; starting it again" >&2
		start "$name" ${command[$name]}
	done
done
