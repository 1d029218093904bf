#!/usr/bin/env bash
# root.sh DIR: makes a disk with a minimal Debian in DIR, as debian.ext4. The archive's packages are unpacked by mmdebstrap, which is
# downloaded and unpacked too, never installed; the machine itself fills the disk, so no root is needed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(realpath -m "$1")
packages=systemd-sysv,udev,dbus,passwd,ca-certificates,kmod,iproute2
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
stamp="$suite $packages"
if [ "$(cat "$dir/debian" 2>/dev/null)" = "$stamp" ]; then exit; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo "Debian $suite: downloading"
apt-get download -q -o APT::Sandbox::User=root mmdebstrap >log 2>&1 || { apt-get update -q >/dev/null && apt-get download -q -o APT::Sandbox::User=root mmdebstrap; } >log 2>&1 || { cat log; exit 1; }
dpkg-deb -x mmdebstrap_*.deb .
PATH=$work/usr/bin:$PATH mmdebstrap --quiet --variant=minbase --include=$packages --aptopt='APT::Sandbox::User "root"' \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
	"$suite" root.tar >log 2>&1 || { cat log; exit 1; }
truncate -s 1G debian.ext4
mke2fs -q -t ext4 -E lazy_itable_init=0,lazy_journal_init=0 debian.ext4
"$here/boot.sh" "$dir" debian.ext4 root.tar prepare >log 2>&1 || true
grep -q 'prepared' log || { cat log; exit 1; }
mv debian.ext4 "$dir/"
echo "$stamp" >"$dir/debian"
