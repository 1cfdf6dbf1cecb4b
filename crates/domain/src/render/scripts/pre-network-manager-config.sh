#!/bin/bash
# Finds the static network settings made for this machine, by MAC address, and gives them to NetworkManager.
# Settings stand in /etc/assisted/network/hostN: mac_interface.ini says which MAC has which name in the files
# beside it, which are NetworkManager keyfiles or network descriptions in YAML.
set -u
settings=/etc/assisted/network
connections=/etc/NetworkManager/system-connections

# Prints the name of the interface that has MAC $1.
interface_of() {
    local path
    for path in /sys/class/net/*; do
        if [ "$(cat "$path/address" 2>/dev/null)" = "$1" ]; then
            basename "$path"
            return 0
        fi
    done
    return 1
}

# Prints a sed program that turns the names in directory $1 into those of this machine; fails if no MAC is here.
# Two steps through a mark, because two cards may have exchanged names.
renames_for() {
    local mac name real found=1 count=0 marks="" names=""
    while IFS='=' read -r mac name; do
        [ -n "$mac" ] || continue
        real=$(interface_of "$mac") || continue
        found=0
        [ -n "$name" ] || continue
        count=$((count + 1))
        marks="${marks}s/\\b${name//./\\.}\\b/@@$count@@/g;"
        names="${names}s/@@$count@@/$real/g;"
    done <"$1/mac_interface.ini"
    printf '%s%s' "$marks" "$names"
    return "$found"
}

# Splits what `nmstatectl gc` prints into keyfiles in directory $1.
split_keyfiles() {
    awk -v dir="$1" '
        /^- - /     { name = $3; out = ""; next }
        /^  - [|]/  { out = dir "/" name; next }
        /^[^ ]/     { out = "" }
        out != ""   { print substr($0, 5) > out }'
}

umask 077
mkdir -p "$connections"
for host in "$settings"/host*; do
    [ -f "$host/mac_interface.ini" ] || continue
    renames=$(renames_for "$host") || continue
    echo "static network settings: using $host"
    for file in "$host"/*.nmconnection; do
        [ -f "$file" ] || continue
        sed "$renames" "$file" >"$connections/$(basename "$file" | sed "$renames")"
    done
    for file in "$host"/*.yml; do
        [ -f "$file" ] || continue
        sed "$renames" "$file" >/run/static-network.yml
        nmstatectl gc /run/static-network.yml | split_keyfiles "$connections"
    done
    exit 0
done
echo "static network settings: none is for this machine"
