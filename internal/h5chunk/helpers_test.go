package h5chunk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/h5meta"
)

// findPython returns an interpreter that has h5py: $PYTHON, or one of the usual ones.
var findPython = sync.OnceValue(func() string {
	for _, p := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3", "python"} {
		if p != "" && exec.Command(p, "-c", "import h5py, numpy").Run() == nil {
			return p
		}
	}
	return ""
})

func python(t testing.TB) string {
	t.Helper()
	p := findPython()
	if p == "" {
		t.Skip("no Python with h5py and numpy found, nor in $PYTHON: nothing to compare with")
	}
	return p
}

// runPython runs a script of ours.
func runPython(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(python(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func openBytes(t testing.TB, b []byte) *h5meta.File {
	t.Helper()
	f, err := h5meta.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// makeFile lets h5py write a file by the statements of script, in which f is the file, and
// returns its bytes.
func makeFile(t testing.TB, script string) []byte {
	t.Helper()
	name := t.TempDir() + "/x.h5"
	runPython(t, "-c", "import sys, h5py, numpy as np\nwith h5py.File(sys.argv[1], 'w') as f:\n"+script, name)
	return readFile(t, name)
}

// mapped returns a Reader of a dataset in a file that is in memory.
func mapped(t testing.TB, file []byte, path string, opts Options) *Reader {
	t.Helper()
	d, err := openBytes(t, file).Dataset(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewMapped(file, d, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// all reads every record.
func all(t testing.TB, r *Reader) []byte {
	t.Helper()
	dst := make([]byte, r.Len()*int64(r.RecordBytes()))
	if err := r.Records(t.Context(), dst, 0, r.Len()); err != nil {
		t.Fatal(err)
	}
	return dst
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// random returns n bytes that compress somewhat, the same for the same seed.
func random(seed, n int) []byte {
	b := make([]byte, n)
	x := uint64(seed)*2654435761 + 1
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x>>60) + byte(i/7)
	}
	return b
}
