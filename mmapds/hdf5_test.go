package mmapds_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func TestFileOfH5py(t *testing.T) {
	path := h5test.File(t, `
    f["images"] = np.arange(6*2*3, dtype="u1").reshape(6, 2, 3)
    f["train/weights"] = np.arange(6, dtype="<f4")
    f["names"] = np.array([b"a", b"b"])
    f["version"] = 3
`)
	ds := open(t, path)
	defer ds.Close()
	if ds.Len() != 6 || len(ds.Specs()) != 2 || ds.Manifest() != nil {
		t.Fatalf("%d records of %v", ds.Len(), ds.Specs())
	}
	v, err := ds.Slice("images", 2, 4)
	require.NoError(t, err)
	if want := []byte{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}; !bytes.Equal(v.Bytes(), want) {
		t.Errorf("%v", v.Bytes())
	}
	w, err := ds.Slice("train/weights", 4, 6)
	require.NoError(t, err)
	if x := tensor.As[float32](w); x[0] != 4 || x[1] != 5 {
		t.Errorf("%v", x)
	}
	result, _ := datasettest.Verify(t, path)
	if len(result.Unchecked) != 2 || result.Bytes != 0 {
		t.Errorf("%+v", result)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"lzf":     {`    f.create_dataset("x", data=np.arange(64), chunks=(8,), scaleoffset=3, compression="lzf")`, `field "x": hdf5: dataset "/x": lzf after scaleoffset`},
		"lengths": {`    f["x"] = np.zeros(3); f["y"] = np.zeros((4, 2))`, "x has 3, y has 4"},
		"nothing": {`    f["x"] = 3`, "no dataset of numbers"},
		"strings": {`    f["x"] = np.zeros(3); f["s"] = np.array([b"a", b"b", b"c"])`, `dataset "s" holds a string for each record`},
		"list":    {`    f["x"] = np.zeros(1); f["s"] = ["ü"]`, "open the others by name (x), or make a dataset of all of them: "},
		"table":   {`    f["x"] = np.zeros(3); f["s"] = np.zeros(3, "i4,f4")`, `dataset "s" holds a compound for each record`},
	} {
		_, err := mmapds.Open(h5test.File(t, c.script))
		if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := h5test.File(t, `    f["x"] = np.zeros(3); f["y"] = np.zeros(4); f["s"] = np.array([b"a"] * 4)`)
	ds, err := mmapds.Open(path, mmapds.WithFields("y"))
	if err != nil || ds.Len() != 4 {
		t.Fatalf("one field of two: %v", err)
	}
	ds.Close()
}

func TestNotHDF5(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("no"), 5000), 0o666))
	if _, err := mmapds.Open(path); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

func TestTruncatedHDF5(t *testing.T) {
	path := h5test.File(t, `    f["x"] = np.zeros((100, 100))`)
	require.NoError(t, os.Truncate(path, 20000))
	if _, err := mmapds.Open(path); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}
