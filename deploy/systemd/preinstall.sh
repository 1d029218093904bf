#!/bin/sh
set -e
# Before an upgrade the old program makes a backup, while the service runs.
if [ "$1" = upgrade ] && [ -z "${YEOLDA_NO_BACKUP:-}" ] && [ -d /run/systemd/system ] && systemctl is-active --quiet yeolda.service; then
	echo 'yeolda: backup before the upgrade'
	systemctl start yeolda-backup.service || {
		echo 'yeolda: the backup failed: see journalctl -u yeolda-backup, or repeat with YEOLDA_NO_BACKUP=1' >&2
		exit 1
	}
fi
