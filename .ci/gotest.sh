#!/usr/bin/env bash
# For other scripts to read: gotest runs go test with its arguments, and says which tests were skipped, and why.
export GOFLAGS="${GOFLAGS-} -timeout=30m" # of a package's tests: a busy machine takes its time
root=$PWD
gotest() { go run "$root/.ci/gotest.go" "$@"; }
