package source

import (
	"archive/zip"
	"bytes"
	"os"
	"testing"
)

// zipped returns an archive with one member of that content.
func zipped(f *testing.F, name string, data []byte) []byte {
	f.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}

func FuzzNPZ(f *testing.F) {
	const header = "\x93NUMPY\x01\x00\x36\x00{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}\n"
	f.Add(zipped(f, "x.npy", []byte(header+"ab")))
	f.Add(zipped(f, "../x.npy", []byte(header+"ab")))
	f.Add(zipped(f, "x.npy", []byte(header[:40])))
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "npz", "x.npz", data) })
}

func FuzzHDF5(f *testing.F) {
	for _, name := range []string{"small-old-basic.h5", "small-new-dense.h5"} {
		data, err := os.ReadFile("../../../internal/hdf5/meta/testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("\x89HDF\r\n\x1a\n\x02\x08\x08\x00"))
	f.Add([]byte("\x89HDF\r\n\x1a\n\x00\x00\x00\x00\x00\x08\x08\x00\x04\x00\x10\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "hdf5", "x.h5", data) })
}
