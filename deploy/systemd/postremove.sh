#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	# Settings go with the package. Reservations, payments and backups do not: only an operator may delete them. Their owner stays with them.
	rm -rf /etc/yeolda
	remains=
	for dir in /var/lib/yeolda /var/backups/yeolda; do
		rmdir "$dir" 2>/dev/null || true
		[ ! -d "$dir" ] || { remains=yes; echo "yeolda: $dir remains; delete it if its data are no longer needed"; }
	done
	if [ -z "$remains" ] && getent passwd yeolda >/dev/null; then userdel yeolda || true; fi
fi
