package prepare

import (
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
)

// An array of Zarr becomes a flat dataset and an HDF5 file of the same records. Package zarr compares all kinds of arrays.
func TestZarr(t *testing.T) {
	c := DefaultConfig()
	c.Source = "../internal/zarr/testdata/zarr-3-uint8-plain.zip"
	c.Fields = "zarr-3-uint8-plain=x"
	c.Dest = filepath.Join(t.TempDir(), "ds")
	flat := mustRun(t, c)
	values := rawtest.Payload(t, c.Dest, "x")
	for i, x := range values {
		if want := byte(i * 37 % 120); x != want {
			t.Fatalf("byte %d: %d, not %d", i, x, want)
		}
	}
	if flat.Source.Kind != "zarr" || flat.Records != 23 || len(values) != 690 {
		t.Errorf("%d records from %s, %d bytes", flat.Records, flat.Source.Kind, len(values))
	}
	c.Dest += ".h5"
	if h5 := mustRun(t, c); h5.ID != flat.ID {
		t.Errorf("identities %s, %s", h5.ID, flat.ID)
	}
}
