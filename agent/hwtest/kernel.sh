#!/usr/bin/env bash
# kernel.sh DIR: puts Debian's kernel and the modules of the hardware tests into DIR, as vmlinuz and *.ko.
#
# Debian builds no gpio-sim, so that one is compiled here from Debian's own source of the same kernel. Packages are
# downloaded and unpacked, never installed; no root is needed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "$1")
modules="virtio_pci virtio_net gpio-sim i2c-dev rc-loopback softdog evdev uinput${HWTEST_MODULES:+ $HWTEST_MODULES}"

# The archive forgets a kernel when it has a newer one: a list that is old, or empty, is fetched again, once.
again() {
	if [ "$(id -u)" = 0 ] && [ -z "${HWTEST_UPDATED:-}" ]; then
		rm -rf "${work:-}"
		apt-get update -q >/dev/null
		HWTEST_UPDATED=1 exec "$here/kernel.sh" "$out"
	fi
	echo "$1" >&2
	exit 1
}

image=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*-amd64\)$/\1/p' || true)
[ -n "$image" ] || again "apt knows no linux-image-amd64: this needs Debian's archive, and apt-get update"
abi=${image#linux-image-}       # 6.1.0-56-amd64
series=$(cut -d. -f1,2 <<<"$abi") # 6.1
if [ "$(cat "$out/abi" 2>/dev/null)" = "$abi $modules" ]; then exit; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
headers=linux-headers-$abi
packages="$image $headers linux-headers-${abi%-amd64}-common linux-kbuild-$series linux-source-$series"
echo "kernel $abi: downloading"
# shellcheck disable=SC2086 # a list of words
apt-get download -q -o APT::Sandbox::User=root $packages >download.log 2>&1 || again "$(cat download.log)"

unpack() { # PACKAGE PATTERN...: the files that match
	dpkg-deb --fsys-tarfile "$1"_*.deb | tar -x --wildcards "${@:2}"
}
unpack "$image" './boot/vmlinuz-*' '*.ko' & image_unpacked=$!
for package in $headers linux-headers-${abi%-amd64}-common linux-kbuild-$series; do unpack "$package" '*'; done

echo "kernel $abi: compiling gpio-sim"
# The headers look for each other under /usr.
sed -i "s,/usr/,$work/usr/," usr/src/$headers/Makefile
find usr/src/$headers -maxdepth 1 -type l -lname '/usr/*' | while read -r link; do
	ln -sfn "$work$(readlink "$link")" "$link"
done
mkdir gpio-sim
unpack linux-source-$series './usr/src/linux-source-*.tar.xz'
tar -xJf usr/src/linux-source-$series.tar.xz --occurrence=1 --strip-components=1 -C "$work" \
	linux-source-$series/drivers/gpio/gpio-sim.c linux-source-$series/drivers/gpio/gpiolib.h linux-source-$series/kernel/irq/irq_sim.c
cp drivers/gpio/gpio-sim.c drivers/gpio/gpiolib.h kernel/irq/irq_sim.c gpio-sim/
cd gpio-sim
mv gpio-sim.c sim.c
sed -i 's/irq_to_desc(\([^)]*\))/irq_data_to_desc(irq_get_irq_data(\1))/' irq_sim.c # irq_to_desc is not exported
cat >Makefile <<'MAKE'
obj-m := gpio-sim.o
gpio-sim-y := sim.o irq_sim.o
ccflags-y := -DCONFIG_IRQ_SIM=1 -I$(src)
MAKE
make -s -C "$work/usr/src/$headers" M="$PWD" modules >../make.log 2>&1 || { cat ../make.log; exit 1; }
cd ..

wait $image_unpacked
mkdir -p "$out"
rm -f "$out"/*
cp boot/vmlinuz-* "$out/vmlinuz"
cp gpio-sim/gpio-sim.ko "$out/"
# add MODULE: copies a module behind those it depends on, and notes the order.
touch "$out/order"
add() {
	local module=$1 needed
	! grep -qx "$module" "$out/order" || return 0
	[ -e "$out/$module.ko" ] || find lib/modules -name "$module.ko" -exec cp {} "$out/" \;
	for needed in $(tr '\0' '\n' <"$out/$module.ko" | sed -n 's/^depends=//p' | tr ',' ' '); do
		if [ ! -e "$(find lib/modules -name "$needed.ko" | head -1)" ]; then needed=${needed//_/-}; fi
		add "$needed"
	done
	echo "$module" >>"$out/order"
}
for module in $modules; do add "$module"; done
echo "$abi $modules" >"$out/abi"
