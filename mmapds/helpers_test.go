package mmapds_test

import (
	"errors"
	"os"
	"runtime/debug"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
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
	require.NoError(t, errors.Join(os.Chmod(path, 0o666), os.Truncate(path, size)))
}
