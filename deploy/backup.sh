#!/bin/sh
# backup.sh DIRECTORY [KEEP]: a backup named after the moment; of the earlier ones the last KEEP stay (14 unless said).
set -eu
directory=${1:?directory}
keep=${2:-14}
yeolda backup "$directory/yeolda-$(date -u +%Y%m%dT%H%M%SZ).dump"
# An old backup is deleted only after a new one was made.
find "$directory" -maxdepth 1 -name 'yeolda-*.dump' | sort -r | tail -n +"$((keep + 1))" | while read -r old; do rm -- "$old"; done
# What a backup that was killed has left.
find "$directory" -maxdepth 1 -name 'yeolda-*.dump.*part' -mmin +1440 -exec rm -- {} +
