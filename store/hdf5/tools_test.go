package hdf5

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// tool runs one of the tools of libhdf5, which must have nothing to say against its arguments.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	var diag bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil || diag.Len() > 0 {
		t.Errorf("%s %v: %v: %s%.1000s", name, args, err, diag.Bytes(), out)
	}
}

// copyScript copies what is in a file to another one, by the values that h5py reads: no object
// is copied as it is.
const copyScript = `
import sys, h5py
with h5py.File(sys.argv[1]) as old, h5py.File(sys.argv[2], "w") as new:
    for k, v in old.attrs.items():
        new.attrs.create(k, v, dtype=old.attrs.get_id(k).dtype)
    def visit(name, x):
        if isinstance(x, h5py.Group):
            y = new.create_group(name)
        else:
            y = new.create_dataset(name, data=x[()], dtype=x.dtype)
        for k, v in x.attrs.items():
            y.attrs.create(k, v, dtype=x.attrs.get_id(k).dtype)
    old.visititems(visit)
`

// h5pyCopy makes a copy by copyScript.
func h5pyCopy(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.h5")
	h5test.Run(t, "-c", copyScript, path, to)
	return to
}

// externalScript makes a file whose records are in another one.
const externalScript = `
import sys, h5py, numpy
numpy.arange(10, dtype="<i4").tofile(sys.argv[1] + ".raw")
with h5py.File(sys.argv[1], "w") as f:
    f.create_dataset("x", shape=(10,), dtype="<i4", external=[(sys.argv[1] + ".raw", 0, 40)])
`

// The command that the refusal of data in other files prints makes a file that opens.
func TestDataInOtherFiles(t *testing.T) {
	old := filepath.Join(t.TempDir(), "OLD.h5")
	h5test.Run(t, "-c", externalScript, old)
	_, mapped := store.OpenHDF5(old, store.OpenOptions{})
	_, err := mmapds.Open(old)
	for _, err := range []error{mapped, err} {
		if !errors.Is(err, store.ErrUnsupported) || !strings.HasSuffix(err.Error(), "; make a file that can be: penstock preprocess OLD.h5 NEW.h5") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := exec.LookPath("h5repack"); err != nil {
		t.Skipf("%v: apt-get install hdf5-tools", err)
	}
	fresh := filepath.Join(t.TempDir(), "NEW.h5")
	tool(t, "h5repack", "-l", "CONTI", old, fresh)
	ds, err := mmapds.Open(fresh)
	require.NoError(t, err)
	defer ds.Close()
	run, err := ds.Slice("x", 0, 10)
	require.NoError(t, err)
	if x := tensor.As[int32](run); len(x) != 10 || x[9] != 9 {
		t.Errorf("records %v", x)
	}
}

// The tools of libhdf5 read all of a file, and find no difference from h5py's file of the same
// arrays.
func TestTools(t *testing.T) {
	for _, name := range []string{"h5dump", "h5ls", "h5stat", "h5diff"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%v: apt-get install hdf5-tools", err)
		}
	}
	files := map[string]string{
		"plain":  buildFile(t, everyType(), 20, 30, store.Info{}),
		"images": buildFile(t, imageSchema(20, 20), 20, 20, store.Info{NormalizeByStatistics: true}),
	}
	dir := t.TempDir()
	for name, c := range compressions {
		files["packed "+name] = filepath.Join(dir, name+".h5")
		buildPacked(t, files["packed "+name], 0, 50, Options{Compress: &c, Splits: trainVal})
		buildPacked(t, files["packed "+name], 50, 75, Options{Append: true, Splits: trainVal})
	}
	for name, path := range files {
		t.Run(name, func(t *testing.T) {
			tool(t, "h5dump", "-pH", path)
			tool(t, "h5dump", path)
			tool(t, "h5ls", "-rv", path)
			tool(t, "h5stat", path)
			tool(t, "h5diff", path, h5pyCopy(t, path))
		})
	}
}
