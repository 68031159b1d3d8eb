package kinds

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/internal/testkit/h5test"
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
		_, _, err := describe(t, path, source.Options{})
		if err == nil || !strings.Contains(err.Error(), `names`) || !strings.Contains(err.Error(), "is a single number") || !strings.Contains(err.Error(), "leave out what makes no field: --fields x") {
			t.Errorf("%s: error %v", path, err)
		}
		fields, samples, err := describe(t, path, source.Options{Fields: "x"})
		if err != nil || len(samples) != 3 || fields[0] != "x uint8(2,)" {
			t.Errorf("%s: fields %q, samples %q, %v", path, fields, samples, err)
		}
		if _, _, err := describe(t, path, source.Options{Fields: "x,n"}); err == nil || !strings.Contains(err.Error(), "is a single number") && !strings.Contains(err.Error(), `there is no "n"`) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

// Of a file of h5py's what makes no field is left out, which is said.
func TestMisfitsOfHDF5(t *testing.T) {
	path := h5test.File(t, "    f['x'] = np.arange(3)\n    f['s'] = ['a', 'b', 'c']\n")
	s := mustOpen(t, path, source.Options{Kind: "hdf5"})
	defer s.Close()
	if hints := s.Info().Hints; len(s.Info().Fields) != 1 || len(hints) != 1 || !strings.HasPrefix(hints[0], "left out, as they make no field: /s (type string") {
		t.Errorf("hints %q", hints)
	}
	chosen := mustOpen(t, path, source.Options{Kind: "hdf5", Fields: "x"})
	defer chosen.Close()
	if hints := chosen.Info().Hints; hints != nil {
		t.Errorf("hints %q", hints)
	}
}

// What would make a field, but is not read, is no matter for a note: who wants the rest says so.
func TestUnreadOfHDF5(t *testing.T) {
	path := h5test.File(t, "    f['x'] = np.arange(3)\n    f.create_dataset('images', (3, 4), 'u1', external=[('raw', 0, 12)])\n")
	_, err := Open(t.Context(), path, source.Options{Kind: "hdf5"})
	if err == nil || !strings.Contains(err.Error(), "h5repack -l CONTI OLD.h5 NEW.h5") || !strings.HasSuffix(err.Error(), "--fields x") {
		t.Errorf("error %v", err)
	}
	if _, err := Open(t.Context(), path, source.Options{Kind: "hdf5", Fields: "images"}); err == nil || !strings.Contains(err.Error(), "external files (raw)") {
		t.Errorf("error %v", err)
	}
	chosen := mustOpen(t, path, source.Options{Kind: "hdf5", Fields: "x"})
	defer chosen.Close()
	if n := len(chosen.Info().Fields); n != 1 {
		t.Errorf("%d fields", n)
	}
}

// A file of many lengths is not listed in full.
func TestManyLengthsOfHDF5(t *testing.T) {
	path := h5test.File(t, "    for i in range(40): f['demo_%d/x' % i] = np.arange(i + 1)\n")
	_, err := Open(t.Context(), path, source.Options{Kind: "hdf5"})
	if err == nil || !strings.Contains(err.Error(), "demo_0/x has 1, ") || !strings.HasSuffix(err.Error(), " and 32 more; choose those of one length with --fields; inspect "+path+" shows all") {
		t.Errorf("error %v", err)
	}
}

// MATLAB puts 512 bytes of its own before its HDF5; names of Keras have colons.
func TestHDF5OfOthers(t *testing.T) {
	path := h5test.File(t, "    f['x'] = np.arange(3)\n    f['dense/kernel:0'] = np.arange(3)\n")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mat := write(t, "x.mat", "MATLAB 7.3 MAT-file"+strings.Repeat(" ", 512-19)+string(b))
	s := mustOpen(t, mat, source.Options{Fields: "dense/kernel:0=kernel,x"})
	defer s.Close()
	if info := s.Info(); info.Kind != "hdf5" || len(info.Fields) != 2 || info.Fields[0].Name != "kernel" {
		t.Errorf("%+v", info)
	}
}
