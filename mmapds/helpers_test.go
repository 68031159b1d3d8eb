package mmapds_test

import (
	"errors"
	"os"
	"runtime/debug"
	"testing"
)

// faults reports whether f touches memory that is not there.
func faults(f func()) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	f()
	return false
}

// cut makes a file of a dataset shorter.
func cut(t *testing.T, path string, size int64) {
	t.Helper()
	if err := errors.Join(os.Chmod(path, 0o666), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
}
