#!/usr/bin/env bash
# figures.sh FIGURE: repeats a measurement of deploy/README.md, How far it goes.
#
#   scrape    the figures of the database in a scrape of /metrics, with five million reservations (RESERVATIONS=...)
#   readings  retention, last readings and charts with 50 million readings (READINGS=...; 15 GB of disk below TMPDIR)
#   page      one of a thousand branches whose front door is dead: the alert with its name (promtool)
#   disk      the disk of the private database fills up: when /readyz answers 503, and when 200 again (root, a tmpfs of 400 MiB)
#   upgrade   every migration while a transaction holds locks, under 50 presses a second and holds; and with ten million readings (READINGS=...)
#             under writes of the last release
#   lost      the machine is lost at a random moment under load; one command restores the archive on a new one
#   backup    the restoration test finds archives that are damaged
#   packages  both Debian packages: lintian, and what their purge leaves behind (root, lintian, debootstrap)
#   bare      an empty Debian with Go, git and make: the time until `make run` is ready, and what changed (root, debootstrap; see bare.sh)
set -euo pipefail
cd "$(dirname "$0")/.."

await() { # CODE: prints the seconds until /readyz answers with it
	local began; began=$(date +%s.%N)
	until [ "$(curl -s -m 2 -o /dev/null -w '%{http_code}' http://127.0.0.1:18090/readyz)" = "$1" ]; do sleep 0.1; done
	awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN {printf "%.1f\n", b - a}'
}

disk() {
	dir=$(mktemp -d)
	trap 'kill "$service" 2>/dev/null || true; wait; umount "$dir/disk" || true; rm -rf "$dir"' EXIT
	chmod 755 "$dir"
	mkdir "$dir/disk"
	mount -t tmpfs -o size=400m tmpfs "$dir/disk"
	go build -o "$dir/yeolda" ./cloud/cmd/yeolda
	YEOLDA_MODE=demo YEOLDA_DATA_DIR=$dir/disk/data YEOLDA_HTTP_ADDR=127.0.0.1:18080 YEOLDA_METRICS_ADDR=127.0.0.1:18090 YEOLDA_MQTT_ADDR=127.0.0.1:18083 \
		"$dir/yeolda" serve >"$dir/log" 2>&1 &
	service=$!
	await 200 >/dev/null
	dd if=/dev/zero of="$dir/disk/ballast" bs=1M status=none 2>/dev/null || true
	echo "the disk is full; /readyz answers 503 after $(await 503) s"
	rm "$dir/disk/ballast"
	echo "there is room again; /readyz answers 200 after $(await 200) s"
}

packages() {
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	deploy/package.sh "$dir"
	TARGETS=amd64:amd64 deploy/agent/package.sh "$dir"
	lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$dir"/yeolda_*_amd64.deb "$dir"/yeolda-agent_*_amd64.deb
	echo "lintian: no error and no warning"
	debootstrap --variant=minbase --include=adduser,ca-certificates,systemd bookworm "$dir/system" >/dev/null
	cp "$dir"/*_amd64.deb "$dir/system/"
	list() { (cd "$dir/system" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache -o -path ./proc -o -path ./sys -o -path ./run -o -path ./tmp \) -prune -o -print; cat etc/passwd etc/group) | sort; }
	list >"$dir/before"
	for package in yeolda yeolda-agent; do
		chroot "$dir/system" sh -c "dpkg --install /${package}_*_amd64.deb && dpkg --purge $package" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
	done
	list >"$dir/after"
	echo "left behind by the purge of both packages:"
	if diff "$dir/before" "$dir/after"; then echo "  nothing"; fi
}

case ${1:-} in
scrape) YEOLDA_BENCH_RESERVATIONS=${RESERVATIONS:-5000000} go test ./cloud/internal/postgres -run '^$' -bench '^BenchmarkVitals$' -benchtime 1x -timeout 60m -v ;;
readings) YEOLDA_BENCH_READINGS=${READINGS:-50000000} go test ./cloud/internal/postgres -run '^$' -bench '^BenchmarkReadings$' -benchtime 1x -timeout 120m -v ;;
page) promtool test rules deploy/prometheus/alerts_test.yml ;;
disk) disk ;;
upgrade) YEOLDA_BENCH_READINGS=${READINGS:-10000000} go test ./cloud/internal/postgres -count=1 -v -timeout 30m -run '^TestUpgrade(UnderLocks|PartitionsTables)$' ;;
lost) YEOLDA_TEST_LOST_MACHINE=1 go test ./firmware-sim/e2e -count=1 -v -run '^TestLostMachine$' ;;
backup) go test ./cloud/internal/archive -count=1 -v -run '^TestRestoreTestFindsABrokenArchive$' ;;
packages) packages ;;
bare) deploy/bare.sh ;;
*) sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2 ;;
esac
