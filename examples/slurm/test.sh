#!/usr/bin/env bash
# Runs the scripts as Slurm would, one task after the other, and compares the dataset with that of a single run.
# usage: test.sh PREPROCESS SOURCE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PREPROCESS=${1:?usage: test.sh PREPROCESS SOURCE}
source=${2:?usage: test.sh PREPROCESS SOURCE}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(--resize 32 --crop 24 --on-error skip)

for script in "$here"/*.sbatch; do bash -n "$script"; done
code=0
"$PREPROCESS" "$source" "$work/one" "${flags[@]}" --quiet || code=$?
[ "$code" = 0 ] || [ "$code" = 3 ]
tasks=4
for ((i = tasks - 1; i >= 0; i--)); do # numbers of an array may begin anywhere; srun inside a task has its own
    env SLURM_ARRAY_TASK_ID=$((10 + i)) SLURM_ARRAY_TASK_MIN=10 SLURM_ARRAY_TASK_MAX=$((10 + tasks - 1)) SLURM_ARRAY_TASK_COUNT=$tasks \
        SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_CPUS_PER_TASK=2 bash "$here/preprocess.sbatch" "$source" "$work/ds" "${flags[@]}" --quiet
done
bash "$here/merge.sbatch" "$work/ds" --remove-parts --quiet
diff -r "$work/one" "$work/ds"
[ ! -e "$work/ds.parts" ]
echo "slurm: $tasks tasks and a merge make the bytes of one run"
