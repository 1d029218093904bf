#!/bin/sh
# Puts Yeolda's branch agent on this Raspberry Pi and connects it to its branch.
#
#   curl -fsS @SERVER@/install.sh | sudo sh -s -- TOKEN
#
# The token comes from `yeolda agent enroll BRANCH` and can be used once, within an hour. YEOLDA_AGENT_PACKAGE is the package, as a
# file or an address; without it the server provides the one of its own version. A package that is fetched must be signed by a
# release key of the server: its signature is beside it (yeolda agent release sign). A file is trusted as it is.
set -eu
keys='@KEYS@'

fail() { echo "$1" >&2; exit 1; }

fetch() { curl --proto '=https' --tlsv1.2 -fsSL -o "$1" "$2"; }

# field TEXT: the text after its length, in four bytes.
field() { printf "\\000\\000\\000\\$(printf %03o "${#1}")%s" "$1"; }

# signed FILE ARCHITECTURE: reports whether a release key has signed the package. FILE.sig contains its version and the signature.
signed() {
	read -r version signature <"$1.sig" || return 1
	case $version$signature in *[!A-Za-z0-9.+~_-]*) return 1 ;; esac
	[ "${#version}" -lt 65 ] || return 1
	for part in 'yeolda/v1 agent package' "$version" "$2" "$(sha256sum "$1" | cut -d ' ' -f 1)"; do field "$part"; done >"$1.message"
	printf '%s==' "$signature" | tr '_-' '/+' | openssl base64 -d -A -out "$1.signature" || return 1
	for key in $keys; do
		# 16 characters of base64 make an X.509 key of 32 bytes of Ed25519.
		printf -- '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA%s\n-----END PUBLIC KEY-----\n' "$key" >"$1.key"
		openssl pkeyutl -verify -pubin -inkey "$1.key" -rawin -in "$1.message" -sigfile "$1.signature" >/dev/null 2>&1 && return
	done
	return 1
}

main() {
	server='@SERVER@'
	token=${1:?the token of yeolda agent enroll is missing}
	[ "$(id -u)" = 0 ] || fail 'run this as root, with sudo'

	if ! command -v yeolda-agent >/dev/null || [ -n "${YEOLDA_AGENT_PACKAGE:-}" ]; then
		architecture=$(dpkg --print-architecture)
		package=${YEOLDA_AGENT_PACKAGE:-$server/packages/yeolda-agent_$architecture.deb}
		directory=$(mktemp -d)
		trap 'rm -rf "$directory"' EXIT
		file=$directory/yeolda-agent.deb
		case $package in
		https://*)
			[ -n "$keys" ] || fail 'the server names no release key (YEOLDA_AGENT_RELEASE_KEYS), so nothing is fetched; set YEOLDA_AGENT_PACKAGE to a file here'
			fetch "$file" "$package" || fail "$package cannot be fetched. The server needs the signed package of its version for $architecture in its YEOLDA_AGENT_FOLDER; YEOLDA_AGENT_PACKAGE names another address, or a file here"
			fetch "$file.sig" "$package.sig" || fail "$package is not signed"
			signed "$file" "$architecture" || fail "no release key has signed $package; nothing was installed"
			;;
		http://*) fail 'the package comes over https:// or from a file' ;;
		*) cp "$package" "$file" ;;
		esac
		dpkg --install "$file"
	fi

	yeolda-agent enroll --server "$server" "$token"
	chown yeolda-agent: /etc/yeolda-agent/credentials
	systemctl enable --quiet yeolda-agent.service yeolda-agent-trial.service
	if [ -d /run/systemd/system ]; then
		systemctl enable --now --quiet yeolda-agent.service
		systemctl restart yeolda-agent.service # an agent that is running has the old credentials
	fi

	echo
	echo 'Enrolled. A machine that replaces another one receives its settings within seconds, and its doors work then.'
	echo 'Otherwise: describe the doors in /etc/yeolda-agent/settings.toml, then systemctl restart yeolda-agent'
	yeolda-agent doctor --credentials /etc/yeolda-agent/credentials || true
}

# All of it has arrived before any of it runs.
main "$@"
