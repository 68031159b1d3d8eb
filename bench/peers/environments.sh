#!/usr/bin/env bash
# Makes the environments that the file environments lists, and prints a line for each: name, Python, and if there is none, why.
#
#   environments.sh PYTHON    whose packages they see; pip fetches the others from PyPI
set -uo pipefail
cd "$(dirname "$0")" || exit
base=$1 out=$PWD/../../out
site=$("$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

make_env() {
    local env=$1
    shift
    "$base" -m venv "$env" || return
    echo "$site" >"$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth"
    timeout "${PEER_SECONDS:-900}" "$env/bin/pip" install -q --disable-pip-version-check "$@"
}

while read -r name packages; do
    case $name in '' | '#'*) continue ;; esac
    env=$out/peers-$name
    if [ "$(cat "$env/made" 2>/dev/null)" != "$packages" ]; then
        echo "peers: making out/peers-$name" >&2
        rm -rf "$env"
        # shellcheck disable=SC2086 # several packages
        if ! make_env "$env" $packages >"$env.log" 2>&1 </dev/null; then
            printf '%s\t\tpip install %s: %s\n' "$name" "$packages" "$(grep -i error "$env.log" | tail -1)"
            continue
        fi
        echo "$packages" >"$env/made"
    fi
    printf '%s\t%s\t\n' "$name" "$env/bin/python"
done <environments
