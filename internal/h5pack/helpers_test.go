package h5pack

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/penstock/penstock/internal/h5chunk"
	"github.com/penstock/penstock/internal/h5meta"
)

// runPython runs assemble by $PYTHON or one of the usual interpreters, if that has h5py.
func runPython(t *testing.T, dir string) {
	t.Helper()
	for _, p := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3", "python"} {
		if p == "" || exec.Command(p, "-c", "import h5py, numpy").Run() != nil {
			continue
		}
		if out, err := exec.Command(p, "-c", assemble, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	t.Skip("no Python with h5py and numpy found, nor in $PYTHON: nothing to compare with")
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read returns all records of a dataset.
func read(t *testing.T, file []byte, path string) []byte {
	t.Helper()
	f, err := h5meta.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.Dataset(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := h5chunk.NewMapped(file, d, h5chunk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dst := make([]byte, r.Len()*int64(r.RecordBytes()))
	if err := r.Records(t.Context(), dst, 0, r.Len()); err != nil {
		t.Fatal(err)
	}
	return dst
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
