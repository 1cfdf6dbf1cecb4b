#!/bin/bash
# Tells chrony which time sources to use.
# usage: add-ntp-sources.sh add|replace SOURCE…
set -eu
config=/etc/chrony.conf
mode=$1
shift
if [ "$mode" = replace ]; then
    sed -i -E '/^(server|pool|peer|sourcedir) /d' "$config"
fi
for source in "$@"; do
    grep -qxF "server $source iburst" "$config" || echo "server $source iburst" >>"$config"
done
systemctl try-restart chronyd.service
