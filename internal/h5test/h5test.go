// Package h5test has what the tests of HDF5 packages share: h5py, which is the other opinion of
// every file, and values that compress.
package h5test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// find looks for an interpreter once.
var find = sync.OnceValue(func() string {
	for _, p := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3", "python"} {
		if p != "" && exec.Command(p, "-c", "import h5py, numpy").Run() == nil {
			return p
		}
	}
	return ""
})

// Find returns an interpreter that has h5py: $PYTHON, or one of the usual ones; "" if there is
// none.
func Find() string { return find() }

// Python is Find for a test that cannot do without: it is skipped if there is none.
func Python(t testing.TB) string {
	t.Helper()
	p := Find()
	if p == "" {
		t.Skip("no Python with h5py and numpy found, nor in $PYTHON: nothing to compare with (Debian: apt-get install python3-h5py)")
	}
	return p
}

// Run gives the interpreter arguments, "-c" and a script first or the name of one, and returns
// what it prints. What fails there fails the test.
func Run(t testing.TB, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(Python(t), args...)
	var diag bytes.Buffer
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, diag.Bytes())
	}
	return out
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
