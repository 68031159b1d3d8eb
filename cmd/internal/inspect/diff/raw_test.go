package diff

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/testkit/require"
)

const root = "../../../../"

// A folder of images is compared file by file with what may be a dataset of it.
func TestDiffRawImages(t *testing.T) {
	a, b := root+"testdata/raw/circle", t.TempDir()
	require.NoError(t, os.CopyFS(b, os.DirFS(a)))
	if c := diff(t, a, b, Options{}); !c.Same || c.Records == 0 || len(c.Values) == 0 {
		t.Errorf("a copy: %+v", c)
	}
	names, err := os.ReadDir(b)
	require.NoError(t, err)
	other, err := os.ReadFile(filepath.Join(b, names[5].Name()))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b, names[3].Name()), other, 0o600))
	c := diff(t, a, b, Options{})
	if c.Same || c.Values[0].Records != 1 || *c.Values[0].First != 3 {
		t.Errorf("one file replaced: %+v", c)
	}
}

// Strings of other programs' HDF5 do not map; they are compared as preprocess reads them.
func TestDiffStringsOfHDF5(t *testing.T) {
	file, err := os.ReadFile(root + "prepare/source/hdf5/testdata/small-fields.h5")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "small.h5ad")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	c := diff(t, path, path, Options{Selection: dataset.Selection{Fields: []string{"obs/_index", "obs/kind"}}})
	if !c.Same || c.Records != 12 || len(c.Values) != 2 || len(c.Notes) != 2 {
		t.Errorf("%+v", c)
	}
}
