#!/usr/bin/env bash
# For other scripts to read: gotest runs go test with its arguments, and says which tests were skipped, and why; model runs programs of
# the model.
export GOFLAGS="${GOFLAGS-} -timeout=30m" # of a package's tests: a busy machine takes its time
export OMP_NUM_THREADS=1            # torch's threads wait by spinning: twice the processor time for the small models of tests
root=$PWD
gotest() { go run "$root/.ci/gotest.go" "$@"; }

# model COUNT FIRST: random programs of Python beside the model in python/tests/model, COUNT of them from number FIRST on, by the programs
# of make demo. A failure names its program.
model() {
    echo "programs $2 to $(($1 + $2 - 1))"
    (cd python && PENSTOCK_MODEL=$2:$1 PENSTOCK_TEST_PENSTOCK=$root/bin/penstock PENSTOCK_TEST_FEED=$root/bin/feed \
        PENSTOCK_TEST_PREPROCESS=$root/bin/preprocess "$PYTHON" -W error -m unittest tests.test_model)
}
