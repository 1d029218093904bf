#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	# Settings go with the package. Reservations, payments and backups do not: only an operator may delete them.
	rm -rf /etc/yeolda
	for dir in /var/lib/yeolda /var/backups/yeolda; do
		[ ! -d "$dir" ] || echo "yeolda: $dir remains; delete it if its data are no longer needed"
	done
fi
