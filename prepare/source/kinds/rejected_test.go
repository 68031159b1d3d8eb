package kinds

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// arraysOfKinds are files of numbers and of values that cannot become a field.
var arraysOfKinds = map[string][]byte{
	"x.npy":     npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }", 6),
	"names.npy": npy(1, "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (3,), }", 24),
	"n.npy":     npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", 8),
}

// An array that cannot become a field does not prevent reading the others, if --fields selects them.
func TestMisfits(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range arraysOfKinds {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o666))
		w, err := z.Create(name)
		require.NoError(t, err)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, z.Close())
	for _, path := range []string{dir, write(t, "x.npz", b.String())} {
		_, _, err := describe(t, path, source.Options{})
		if err == nil || !strings.Contains(err.Error(), `names`) || !strings.Contains(err.Error(), "leave out what cannot become a field: --fields x") {
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

// From a file that h5py wrote, arrays that cannot become a field, or whose length differs from that of its numbers, are
// left out, and the hint lists them.
func TestMisfitsOfHDF5(t *testing.T) {
	path := h5test.File(t, "    f['x'] = np.arange(3)\n    f['s'] = ['a', 'b']\n    f['r'] = np.array([f['x'].ref] * 3, h5py.ref_dtype)\n")
	s := mustOpen(t, path, source.Options{Kind: "hdf5"})
	defer s.Close()
	want := "left out, as they cannot become a field: /r (type object reference is not one of numbers: not supported), /s (2 records, not 3)"
	if hints := s.Info().Hints; len(s.Info().Fields) != 1 || len(hints) != 1 || hints[0] != want {
		t.Errorf("hints %q", hints)
	}
	for fields, n := range map[string]int64{"x": 3, "s": 2} {
		chosen := mustOpen(t, path, source.Options{Kind: "hdf5", Fields: fields})
		if info := chosen.Info(); info.Hints != nil || info.Count != n {
			t.Errorf("%s: %+v", fields, info)
		}
		require.NoError(t, chosen.Close())
	}
}

// Data that would make a field, but is not read, gets no note.
func TestUnreadOfHDF5(t *testing.T) {
	path := h5test.File(t, "    f['x'] = np.arange(3)\n    f.create_dataset('images', (3, 4), 'u1', chunks=(1, 4), shuffle=True, scaleoffset=0)\n"+
		"    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE); p.set_chunk((1, 4)); p.set_shuffle(); p.set_scaleoffset(h5py.h5z.SO_INT, 0)\n"+
		"    h5py.h5d.create(f.id, b'last', h5py.h5t.STD_I32LE, h5py.h5s.create_simple((3, 4)), p)\n")
	_, err := Open(t.Context(), path, source.Options{Kind: "hdf5"})
	if err == nil || !strings.Contains(err.Error(), "h5repack -f NONE OLD.h5 NEW.h5") || !strings.HasSuffix(err.Error(), "--fields images,x") {
		t.Errorf("error %v", err)
	}
	if _, err := Open(t.Context(), path, source.Options{Kind: "hdf5", Fields: "last"}); err == nil || !strings.Contains(err.Error(), " others ") {
		t.Errorf("error %v", err)
	}
	chosen := mustOpen(t, path, source.Options{Kind: "hdf5", Fields: "x"})
	defer chosen.Close()
	if n := len(chosen.Info().Fields); n != 1 {
		t.Errorf("%d fields", n)
	}
}

// Elements in other files are read from the folder of the file, and from other folders only if the user allows it.
func TestHDF5ElementsElsewhere(t *testing.T) {
	path := h5test.File(t, `
    import os
    dir, outer = os.path.dirname(f.filename), os.path.dirname(os.path.dirname(f.filename))
    for name in ("secret.raw", "own/secret.raw"):
        os.makedirs(os.path.join(dir, "own"), exist_ok=True)
        open(os.path.join(dir, name), "wb").write(bytes(range(12)))
    with h5py.File(os.path.join(dir, "secret.h5"), "w") as g:
        g["x"] = np.arange(12, dtype="u1").reshape(3, 4)
    os.symlink("../secret.raw", os.path.join(dir, "own/link.raw"))
    with h5py.File(os.path.join(dir, "own/mine.h5"), "w") as g:
        for name, file in dict(fine="secret.raw", up="../secret.raw", root=os.path.join(dir, "secret.raw"), link="link.raw").items():
            g.create_dataset(name, (3, 4), "u1", external=[(file, 0, 12)])
        for name, file in dict(virtual_up="../secret.h5", virtual_root=os.path.join(dir, "secret.h5"), gone="gone.h5").items():
            l = h5py.VirtualLayout((3, 4), "u1")
            l[:] = h5py.VirtualSource(file, "x", shape=(3, 4))
            g.create_virtual_dataset(name, l)
`)
	mine := filepath.Join(filepath.Dir(path), "own", "mine.h5")
	read := func(field string, outside bool) error {
		s, err := Open(t.Context(), mine, source.Options{Kind: "hdf5", Fields: field, Outside: outside})
		if err != nil {
			return err
		}
		defer s.Close()
		n, v := 0, source.NewValues(1)
		for sample, err := range s.Samples() {
			if err == nil {
				err = sample.Data.Read(v)
			}
			if err != nil {
				return err
			}
			if want := []byte{byte(4 * n), byte(4*n + 1), byte(4*n + 2), byte(4*n + 3)}; !bytes.Equal(v.Get(0), want) {
				return fmt.Errorf("record %d is %v", n, v.Get(0))
			}
			n++
		}
		return nil
	}
	require.NoError(t, read("fine", false))
	for _, field := range []string{"up", "root", "link", "virtual_up", "virtual_root"} {
		if err := read(field, false); !errors.Is(err, vfs.ErrOutside) {
			t.Errorf("%s: error %v", field, err)
		}
		if err := read(field, true); err != nil {
			t.Errorf("%s, --outside: %v", field, err)
		}
	}
	if err := read("gone", true); err == nil || !strings.Contains(err.Error(), "put it next to") {
		t.Errorf("error %v", err)
	}
}

// A file of many lengths is not listed in full.
func TestManyLengthsOfHDF5(t *testing.T) {
	path := h5test.File(t, "    for i in range(40): f['demo/x%02d' % i] = np.arange(i + 1, dtype='i8 i4'.split()[i % 2])\n")
	_, err := Open(t.Context(), path, source.Options{Kind: "hdf5"})
	if err == nil || !strings.Contains(err.Error(), "demo/x00 has 1, ") || !strings.HasSuffix(err.Error(), " and 32 more; choose arrays of one length: --fields demo/x38; or write sequences and their offsets with penstock.Writer, one record each; penstock inspect "+path+" shows all") {
		t.Errorf("error %v", err)
	}
}

// MATLAB writes 512 bytes of header before its HDF5; names of Keras have colons.
func TestHDF5OfOthers(t *testing.T) {
	path := h5test.File(t, "    f['x'] = np.arange(3)\n    f['dense/kernel:0'] = np.arange(3)\n")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	mat := write(t, "x.mat", "MATLAB 7.3 MAT-file"+strings.Repeat(" ", 512-19)+string(b))
	s := mustOpen(t, mat, source.Options{Fields: "dense/kernel:0=kernel,x"})
	defer s.Close()
	if info := s.Info(); info.Kind != "hdf5" || len(info.Fields) != 2 || info.Fields[0].Name != "kernel" {
		t.Errorf("%+v", info)
	}
}
