#!/bin/sh
# Puts Yeolda's branch agent on this Raspberry Pi and connects it to its branch.
#
#   curl -fsS @SERVER@/install.sh | sudo sh -s -- TOKEN
#
# The token comes from `yeolda agent enroll BRANCH` and is good once, for an hour. Where the package is:
# YEOLDA_AGENT_PACKAGE, a file or an address; without it the latest release.
set -eu

main() {
	server='@SERVER@'
	token=${1:?the token of yeolda agent enroll is missing}
	[ "$(id -u)" = 0 ] || { echo 'run this as root, with sudo' >&2; exit 1; }

	if ! command -v yeolda-agent >/dev/null || [ -n "${YEOLDA_AGENT_PACKAGE:-}" ]; then
		architecture=$(dpkg --print-architecture)
		package=${YEOLDA_AGENT_PACKAGE:-https://github.com/yeolda/yeolda/releases/latest/download/yeolda-agent_$architecture.deb}
		directory=$(mktemp -d)
		trap 'rm -rf "$directory"' EXIT
		case $package in
		https://*) curl --proto '=https' --tlsv1.2 -fsSL -o "$directory/yeolda-agent.deb" "$package" ;;
		http://*) echo 'the package comes over https:// or from a file' >&2; exit 1 ;;
		*) cp "$package" "$directory/yeolda-agent.deb" ;; # the operator's own file
		esac
		dpkg --install "$directory/yeolda-agent.deb"
	fi

	yeolda-agent enroll --server "$server" "$token"
	chown yeolda-agent: /etc/yeolda-agent/credentials
	systemctl enable --quiet yeolda-agent.service yeolda-agent-trial.service
	if [ -d /run/systemd/system ]; then
		systemctl enable --now --quiet yeolda-agent.service
		systemctl restart yeolda-agent.service # an agent that is running has the old credentials
	fi

	echo
	echo 'Enrolled. Next: describe the doors in /etc/yeolda-agent/settings.toml, then systemctl restart yeolda-agent'
	yeolda-agent doctor --credentials /etc/yeolda-agent/credentials || true
}

# All of it has arrived before any of it runs.
main "$@"
