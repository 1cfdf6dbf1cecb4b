#!/bin/bash
# Fetches the agent image and does not give up: a host often boots before its network or registry is ready.
# usage: agent-pull-image IMAGE
set -u
image=$1
pause=5
longest=300

# A pull that was cut off can leave an image that is listed but cannot be opened.
if podman image exists "$image" && ! podman image inspect "$image" >/dev/null 2>&1; then
    podman image rm --force "$image"
fi

until podman image exists "$image" || podman pull --quiet --authfile /root/.docker/config.json "$image"; do
    echo "agent image $image is not there yet, next try in ${pause}s"
    sleep "$pause"
    pause=$((pause * 2 > longest ? longest : pause * 2))
done
