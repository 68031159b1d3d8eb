package prepare

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/view"
)

// A view stores no records; the error says where they are.
func TestViewIsNoSource(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	c.View = true
	mustRun(t, c)
	view := config(t, filepath.Join(c.Dest, view.Name))
	view.Images.Resize, view.Images.Crop = nil, nil
	for _, view.From = range []string{"auto", "hdf5"} {
		_, err := Run(context.Background(), view, &rawtest.Silent{})
		if !errors.Is(err, store.ErrView) || !strings.HasSuffix(err.Error(), "open the dataset instead: "+c.Dest) || strings.Count(err.Error(), view.Source) != 1 {
			t.Errorf("--from %s: error %v", view.From, err)
		}
		rawtest.CheckNothing(t, view.Dest)
	}
}

// A view is a source of the records that it selects, in its order.
func TestViewSource(t *testing.T) {
	whole := config(t, arrays(t, 10))
	whole.Images.Resize, whole.Images.Crop = nil, nil
	field := mustRun(t, whole).Fields[0].Name
	path := filepath.Join(filepath.Dir(whole.Dest), "some.view.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"penstock": "view", "version": 1, "select": {"dataset": "ds"}, "records": [7, 2, 3]}`), 0o666))
	read := func(dest string, records ...int) []byte {
		t.Helper()
		ds, err := mmapds.Open(dest)
		require.NoError(t, err)
		defer ds.Close()
		b := make([]byte, len(records)*4096)
		require.NoError(t, ds.Gather(t.Context(), field, records, b))
		return b
	}
	for _, name := range []string{"some", "some.h5"} {
		c := config(t, path)
		c.Images.Resize, c.Images.Crop = nil, nil
		c.Dest = filepath.Join(t.TempDir(), name)
		if n := mustRun(t, c).Records; n != 3 || !bytes.Equal(read(c.Dest, 0, 1, 2), read(whole.Dest, 7, 2, 3)) {
			t.Errorf("%s: %d records, or other values", name, n)
		}
	}
}
