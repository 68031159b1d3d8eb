// Package h5test has what the tests of HDF5 packages share: h5py, which is the other opinion of
// every file, and values that compress.
package h5test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
)

// need imports the modules that all scripts here need.
const need = "import h5py, numpy"

// Find returns an interpreter that has h5py, "" if there is none.
func Find() string { return pythontest.Find(need) }

// Python is Find for a test that cannot do without: it is skipped if there is none.
func Python(t testing.TB) string {
	t.Helper()
	return pythontest.Need(t, need)
}

// All returns every interpreter that has h5py, each installation once. A test without one is
// skipped.
func All(t testing.TB) []string {
	t.Helper()
	Python(t)
	return slices.Collect(pythontest.All(need))
}

// Run gives the interpreter arguments, "-c" and a script first or the name of one, and returns
// its output. A failure there fails the test.
func Run(t testing.TB, args ...string) []byte {
	t.Helper()
	return pythontest.Run(t, need, args...)
}

// File lets h5py write a file by the statements of script, indented by four spaces, in which f
// is the file and np is NumPy, and returns its name.
func File(t testing.TB, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.h5")
	Run(t, "-c", "import sys, h5py, numpy as np\nwith h5py.File(sys.argv[1], 'w') as f:\n"+script, name)
	return name
}

// Values returns n bytes that compress somewhat, the same for the same seed.
func Values(seed, n int) []byte {
	b := make([]byte, n)
	x := uint64(seed)*2654435761 + 1
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x>>60) + byte(i/7)
	}
	return b
}
