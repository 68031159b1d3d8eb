#!/usr/bin/env bash
# For .ci/run and .ci/nightly to read: steps that are tried side by side, their output, and a table of their seconds.
#
#   add NAME COMMAND...    # a step of the next run_steps
#   run_steps LANES        # the steps in their order, LANES at a time; goes on after a failure
#   report                 # the table; false if a step failed
#
# After $limit seconds in all, what runs is stopped and counts as failed, as does what has not begun.
set -uo pipefail
exec </dev/null
folder=$(mktemp -d)
names=()
commands=()
groups=()
trap 'rm -rf "$folder"' EXIT
trap 'stop; exit 130' INT TERM

add() {
    names+=("$1")
    shift
    commands+=("$(printf '%q ' "$@")")
}

stop() {
    local group
    for group in ${groups[@]+"${groups[@]}"}; do
        kill -- "-$group" 2>/dev/null
    done
}

run_steps() {
    local lane left=$((${limit:?} - SECONDS))
    rm -f "$folder/next"
    set -m # a group of processes for each lane, to be stopped as a whole
    groups=()
    for ((lane = 0; lane < $1; lane++)); do
        take &
        groups+=($!)
    done
    (sleep "$((left > 0 ? left : 0))" && stop) &
    local watch=$!
    set +m
    wait "${groups[@]}"
    kill -- "-$watch" 2>/dev/null
    groups=()
    for lane in "${!names[@]}"; do
        if ! cat "$folder/$lane.row" >>"$folder/rows" 2>/dev/null; then
            printf '\n=== %s\n' "${names[lane]}"
            cat "$folder/$lane.log" 2>/dev/null
            printf -- '--- NOT ENDED: %s\n' "${names[lane]}"
            printf '%s\tNOT ENDED in %d s of all steps\t-\t-\n' "${names[lane]}" "$limit" >>"$folder/rows"
        fi
        rm -f "$folder/$lane".*
    done
    names=()
    commands=()
}

# take tries the steps that no other lane has taken.
take() {
    local n
    set +m
    while ((SECONDS < limit)) && n=$(next) && ((n < ${#names[@]})); do
        try "$n"
    done
}

next() (
    flock 9
    n=$(cat "$folder/next" 2>/dev/null || echo 0)
    echo $((n + 1)) >"$folder/next"
    echo "$n"
) 9>"$folder/lock"

try() {
    local n=$1 verdict=ok wall user system TIMEFORMAT='%0R %0U %0S'
    { time eval "${commands[n]}" >"$folder/$n.log" 2>&1; } 2>"$folder/$n.time" || verdict=FAILED
    read -r wall user system < <(tail -n 1 "$folder/$n.time")
    printf '%s\t%s\t%d\t%d\n' "${names[n]}" "$verdict" "$wall" $((user + system)) >"$folder/$n.row"
    (
        flock 9
        printf '\n=== %s\n' "${names[n]}"
        cat "$folder/$n.log"
        printf -- '--- %s: %s (%d s, %d s of CPU)\n' "$verdict" "${names[n]}" "$wall" $((user + system))
    ) 9>"$folder/print"
}

report() {
    local failed
    printf '\n%8s %8s\n' seconds "of CPU"
    awk -F'\t' '{ printf "%8s %8s  %s%s\n", $3, $4, $1, $2 == "ok" ? "" : ": " $2; cpu += $4 } END { printf "%8s %8d\n", "", cpu }' "$folder/rows"
    failed=$(awk -F'\t' '$2 != "ok"' "$folder/rows" | wc -l)
    echo "$(($(wc -l <"$folder/rows") - failed)) passed, $failed failed, in $SECONDS of $limit seconds"
    if ((SECONDS >= limit)); then
        echo "FAILED: this took longer than $limit seconds; the table says where they went"
        return 1
    fi
    [ "$failed" = 0 ]
}
