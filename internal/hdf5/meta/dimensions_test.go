package meta

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// TestDimensions reads the names of axes that h5py wrote.
func TestDimensions(t *testing.T) {
	for _, name := range []string{"testdata/scales-old.h5", "testdata/scales-new.h5"} {
		f := mustOpen(t, name)
		for path, want := range map[string][]string{
			"/t2m": {"time", "lat", "lon"}, "/g/flag": {"time", "bands"}, "/labeled": {"step", "lat", ""},
			"/lat": {"lat"}, "/bands": {"bands"},
		} {
			d, err := f.Dataset(path)
			require.NoError(t, err)
			if got := d.Dimensions(); !slices.Equal(got, want) {
				t.Errorf("%s: axes of %s are %q, want %q", name, path, got, want)
			}
			if d.IsDimension() != (path == "/bands") {
				t.Errorf("%s: %s is a dimension without coordinates: %t", name, path, d.IsDimension())
			}
		}
	}
	f := mustOpen(t, "testdata/small-new-basic.h5")
	for d := range f.All() {
		if got := d.Dimensions(); got != nil {
			t.Errorf("axes of %s are %q", d.Path, got)
		}
	}
}
