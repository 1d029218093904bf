#!/bin/sh
set -e
if ! getent passwd yeolda >/dev/null; then
	adduser --system --group --quiet --home /var/lib/yeolda --no-create-home yeolda
fi
chown root:yeolda /etc/yeolda /etc/yeolda/yeolda.env
chmod 750 /etc/yeolda
chmod 640 /etc/yeolda/yeolda.env
install -d -o yeolda -g yeolda -m 750 /var/backups/yeolda
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# An upgrade starts the new program; a new installation waits for its settings.
	systemctl try-restart yeolda.service
fi
