#!/usr/bin/env bash
# bare.sh [user] [root]: the README's first steps on an empty Debian 12 that has only Go, git and make (and sudo, for the ordinary user):
# git clone, then `make run` until it is ready. It prints the times, and each file outside the checkout that differs from the same Debian
# on which only the announced packages were installed. Go's caches in the home directory are excepted. With SUITE=trixie it is Debian 13, and
# with SUITE=noble MIRROR=http://archive.ubuntu.com/ubuntu Ubuntu 24.04, if debootstrap knows it.
#
# It needs root, debootstrap and about 8 GB in ${TMPDIR:-/var/tmp}. The Go tree, certificates, proxies and the package mirror are those
# of this machine. Variables YEOLDA_..._ADDR are passed on, if the usual ports are in use.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "bare.sh: run it as root" >&2; exit 1; }
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/yeolda-bare.XXXXXX")
trap 'rm -rf --one-file-system "$dir"' EXIT

# within SYSTEM USER COMMAND...: runs a command in a system, with processes and mounts that end with it.
within() {
	local system=$1 user=$2 home=/root
	[ "$user" = root ] || home=/home/$user
	unshare --mount --pid --fork --kill-child bash -c '
		mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot --userspec="$1" "$0" "${@:2}"
	' "$system" "$user" env -i "HOME=$home" PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		DEBIAN_FRONTEND=noninteractive "GOPROXY=$(go env GOPROXY)" "GOSUMDB=$(go env GOSUMDB)" "${passed[@]}" "${@:3}"
}
passed=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY YEOLDA_HTTP_ADDR YEOLDA_MQTT_ADDR YEOLDA_METRICS_ADDR YEOLDA_SANDBOX_ADDR YEOLDA_SIM_ADDR; do
	[ -z "${!name:-}" ] || passed+=("$name=${!name}")
done

# An empty system.
base=$dir/base
suite=${SUITE:-bookworm}
mirror=${MIRROR:-$(apt-cache policy | sed -n "s/^ *[0-9]* \(https\?:[^ ]*\) $suite\/main .*/\1/p" | head -1)}
debootstrap --variant=minbase --include=git,make,ca-certificates,sudo "$suite" "$base" "${mirror:-http://deb.debian.org/debian}" >"$dir/log" 2>&1 || { tail "$dir/log"; exit 1; }
cp -a "$(go env GOROOT)" "$base/usr/local/go"
cp -L /etc/resolv.conf /etc/hosts "$base/etc/"
cp -r /usr/local/share/ca-certificates "$base/usr/local/share/"
apt-config dump | grep -E '^Acquire::https?::Proxy' >"$base/etc/apt/apt.conf.d/99proxy" || true
within "$base" root update-ca-certificates >"$dir/log" 2>&1
within "$base" root useradd --create-home --shell /bin/bash user
echo 'user ALL=(ALL) NOPASSWD: ALL' >"$base/etc/sudoers.d/user"
git bundle create -q "$base/srv/yeolda.bundle" HEAD

# list SYSTEM HOME: kind, mode, owner and content of each file that is not the checkout or a cache. The certificate of the package
# ssl-cert is random.
list() {
	local prune=(-path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp -o -path ./var/tmp -o -path ./var/cache -o -path ./var/log
		-o -path ./var/lib/apt -o -path "./$2/yeolda" -o -path "./$2/go" -o -path "./$2/.cache/go-build" -o -path "./$2/.config/go" -o -name 'ssl-cert-snakeoil.*')
	(
		cd "$1"
		find . -xdev \( "${prune[@]}" \) -prune -o ! -path "./$2/.cache" ! -path "./$2/.config" -printf '%p %y %m %U %l\n'
		find . -xdev \( "${prune[@]}" \) -prune -o -type f -print0 | xargs -0 sha256sum | sed -E 's/^([^ ]*) +(.*)/\2 has \1/'
	) | sort
}

# changes compares two lists, and prints each path that is new, missing or changed, but nothing below one that is new.
changes() {
	{ diff "$dir/before" "$dir/after" || true; } | awk '
		/^[<>]/ {if (!($2 in seen)) order[++n] = $2; seen[$2] = seen[$2] $1}
		END {
			for (i = 1; i <= n; i++) {
				path = order[i]
				is = seen[path] ~ /</ ? (seen[path] ~ />/ ? "changed" : "missing") : "new"
				parent = path; sub("/[^/]*$", "", parent)
				if (is == "new" && ((parent in seen) && seen[parent] !~ /</)) continue
				print "  " is ": " path; any = 1
			}
			if (!any) print "  nothing"
		}'
}

walk() { # USER
	local user=$1 home=home/$1 system=$dir/$1
	[ "$user" = root ] && home=root
	cp -a "$base" "$system"
	cat >"$system/srv/walk.sh" <<'END'
set -euo pipefail
cd
since() { awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN {printf "%.1f s", b - a}'; }
began=$(date +%s.%N)
git clone -q -c advice.detachedHead=false /srv/yeolda.bundle yeolda
echo "git clone: $(since)"
cd yeolda
began=$(date +%s.%N)
set -m
make run >/tmp/run.log 2>&1 &
until grep -q 'Yeolda is running' /tmp/run.log; do
	kill -0 $! 2>/dev/null || { cat /tmp/run.log; exit 1; }
	sleep 0.2
done
echo "make run: ready after $(since)"
kill -INT -- -$!
wait 2>/dev/null || true
echo "processes left: $(cat /proc/[0-9]*/comm 2>/dev/null | grep -cE 'yeolda|postgres|make' || true)"
END
	echo "== as $user (load average $(cut -d ' ' -f 1 /proc/loadavg))"
	within "$system" "$user" bash /srv/walk.sh
	rm "$system/srv/walk.sh"
	grep '^yeolda: installing' "$system/tmp/run.log" || true

	# The same system with the announced packages only.
	local reference=$dir/reference
	if [ ! -d "$reference" ]; then
		cp -a "$base" "$reference"
		mkdir -p "$reference/etc/postgresql-common"
		echo 'create_main_cluster = false' >"$reference/etc/postgresql-common/createcluster.conf"
		within "$reference" root sh -c "apt-get update && apt-get install -y --no-install-recommends $(sed -n 's/^yeolda: installing the package \([a-z0-9-]*\).*/\1/p' "$system/tmp/run.log" | sort -u | xargs)" \
			>"$dir/log" 2>&1 || { tail "$dir/log"; exit 1; }
	fi
	list "$reference" "$home" >"$dir/before"
	list "$system" "$home" >"$dir/after"
	echo "changed outside the checkout:"
	changes
	within "$system" "$user" make -s -C "/$home/yeolda" clean
	list "$system" "$home" >"$dir/after"
	echo "the same after make clean:"
	changes
	rm -rf --one-file-system "$system"
}

[ $# -gt 0 ] || set -- user root
for user; do walk "$user"; done
