package source

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/h5test"
)

// arraysOfKinds are files of numbers and of what makes no field.
var arraysOfKinds = map[string][]byte{
	"x.npy":     npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }", 6),
	"names.npy": npy(1, "{'descr': '<U1', 'fortran_order': False, 'shape': (3,), }", 12),
	"n.npy":     npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", 8),
}

// An array that makes no field keeps nobody from the others, who asks for them.
func TestMisfits(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range arraysOfKinds {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, write(t, "x.npz", b.String())} {
		_, _, err := describe(t, path, Options{})
		if err == nil || !strings.Contains(err.Error(), `names`) || !strings.Contains(err.Error(), "is a single number") || !strings.Contains(err.Error(), "leave out what makes no field: --fields x") {
			t.Errorf("%s: error %v", path, err)
		}
		fields, samples, err := describe(t, path, Options{Fields: "x"})
		if err != nil || len(samples) != 3 || fields[0] != "x uint8(2,)" {
			t.Errorf("%s: fields %q, samples %q, %v", path, fields, samples, err)
		}
		if _, _, err := describe(t, path, Options{Fields: "x,n"}); err == nil || !strings.Contains(err.Error(), "is a single number") && !strings.Contains(err.Error(), `there is no "n"`) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

// Of a file of h5py's what makes no field is left out, which is said.
func TestMisfitsOfHDF5(t *testing.T) {
	path := h5test.File(t, "    f['x'] = np.arange(3)\n    f['s'] = ['a', 'b', 'c']\n")
	s := mustOpen(t, path, Options{Kind: "hdf5"})
	defer s.Close()
	if hints := s.Info().Hints; len(s.Info().Fields) != 1 || len(hints) != 1 || !strings.HasPrefix(hints[0], "left out, as they make no field: /s (type string") {
		t.Errorf("hints %q", hints)
	}
	chosen := mustOpen(t, path, Options{Kind: "hdf5", Fields: "x"})
	defer chosen.Close()
	if hints := chosen.Info().Hints; hints != nil {
		t.Errorf("hints %q", hints)
	}
}
