package prepare

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// A source that promises more than the disk holds is refused before work begins: a few bytes of metadata can promise any
// number of records.
func TestSpaceBeforeWork(t *testing.T) {
	if _, known := usage.FreeSpace(t.TempDir()); !known {
		t.Skip("free space is not known on this system")
	}
	for _, records := range []string{"1000000000000000", "4611686018427387904"} {
		source := filepath.Join(t.TempDir(), "x.zarr")
		require.NoError(t, os.Mkdir(source, 0o777))
		metadata := `{"zarr_format": 3, "node_type": "array", "shape": [` + records + `, 5, 7], "data_type": "uint8", "fill_value": 3, "codecs": [{"name": "bytes"}],
			"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 5, 7]}}, "chunk_key_encoding": {"name": "default"}}`
		require.NoError(t, os.WriteFile(filepath.Join(source, "zarr.json"), []byte(metadata), 0o666))
		for _, dest := range []string{"ds", "ds.h5", "ds.zarr", "not/yet/ds"} {
			for _, resume := range []bool{false, true} {
				c := config(t, source)
				c.Dest, c.Images.Resize, c.Images.Crop, c.Resume = filepath.Join(t.TempDir(), dest), nil, nil, resume
				_, err := Run(t.Context(), c, &rawtest.Silent{})
				if dest == "ds.h5" && resume && err != nil { // the file asks for its space where it is created
					continue
				}
				if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "writing it needs at least") {
					t.Errorf("%s records into %s: error %v", records, dest, err)
				}
			}
		}
	}
}
