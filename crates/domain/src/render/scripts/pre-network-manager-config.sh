#!/bin/bash
# Finds the static network settings made for this machine, by MAC address, and puts them into directory $1.
# Settings stand in /etc/assisted/network/hostN: mac_interface.ini says which MAC has which name in the files
# beside it, which are NetworkManager keyfiles or network descriptions in YAML.
# An initrd has few programs: this needs sed, cat, mkdir and rm, and nmstatectl and awk for YAML alone.
set -u
# $2 is another root directory, for tests.
root=${2:-}
settings=$root/etc/assisted/network
connections=$root$1

# Prints the name of the interface that has MAC $1.
interface_of() {
    local path
    for path in "$root"/sys/class/net/*; do
        if [ "$(cat "$path/address" 2>/dev/null)" = "$1" ]; then
            echo "${path##*/}"
            return 0
        fi
    done
    return 1
}

# Prints a sed program that turns the names in directory $1 into those of this machine; fails if no MAC is here.
# Two steps through a mark, because two cards may have exchanged names.
renames_for() {
    local mac name real digits keep found=1 count=0 marks="" names=""
    while IFS='=' read -r mac name; do
        [ -n "$mac" ] || continue
        real=$(interface_of "$mac") || continue
        found=0
        [ -n "$name" ] || continue
        count=$((count + 1))
        marks="${marks}s/\\b${name//./\\.}\\b/@@$count@@/g;"
        # Linux takes 15 letters: in front of the number of a VLAN a long name is cut.
        for digits in 1 2 3 4; do
            keep=$((14 - digits))
            [ "${#real}" -gt "$keep" ] || continue
            names="${names}s/@@$count@@\\.\\([0-9]\\{$digits\\}\\)\\b/${real:0:$keep}.\\1/g;"
        done
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
mkdir -p "$connections" "$root/run"
used=""
for host in "$settings"/host*; do
    [ -f "$host/mac_interface.ini" ] || continue
    renames=$(renames_for "$host") || continue
    echo "static network settings: using $host"
    # What was guessed from the kernel's arguments would compete with what was asked for.
    [ -n "$used" ] || rm -f "$connections"/*.nmconnection
    used=yes
    for file in "$host"/*.nmconnection; do
        [ -f "$file" ] || continue
        name=${file##*/}
        name=$(printf '%s\n' "${name%.nmconnection}" | sed "$renames")
        sed "$renames" "$file" >"$connections/$name.nmconnection"
    done
    for file in "$host"/*.yml; do
        [ -f "$file" ] || continue
        sed "$renames" "$file" >"$root/run/static-network.yml"
        nmstatectl gc "$root/run/static-network.yml" | split_keyfiles "$connections"
    done
done
[ -n "$used" ] || echo "static network settings: none is for this machine"
