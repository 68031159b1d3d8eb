package views_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// scales is a file that h5py wrote with dimension scales: t2m is (time, lat, lon), 6 by 4 by 5.
const scales = "../../internal/hdf5/meta/testdata/scales-new.h5"

// TestNamedAxes makes windows by the names of the axes that a file has, and refuses those that it does not have.
func TestNamedAxes(t *testing.T) {
	path, err := filepath.Abs(scales)
	require.NoError(t, err)
	open := func(sizes string, parts ...string) (*views.Dataset, error) {
		return views.Open(t.Context(), write(t, filepath.Join(t.TempDir(), "w.view.json"), fmt.Sprintf(
			`%s"window": [%s], "by": {"sizes": {%s}}}`, head, strings.Join(parts, ", "), sizes)), views.Options{})
	}
	part := func(field string) string { return fmt.Sprintf(`{"dataset": %q, "fields": [%q]}`, path, field) }
	for _, sizes := range []string{`"time": 2, "lat": 3, "lon": 4`, `"0": 2, "1": 3, "2": 4`, `"time": 2, "1": 3, "lon": 4`} {
		ds, err := open(sizes, part("t2m"))
		require.NoError(t, err)
		v, err := ds.Source.Slice("t2m", 0, ds.Source.Len())
		require.NoError(t, err)
		got, at := tensor.As[float32](v), 0
		for i := range 5 * 2 * 2 {
			for k := range 24 {
				time, lat, lon := i/4+k/12, i/2%2+k/4%3, i%2+k%4
				if want := float32(time*20 + lat*5 + lon); got[at] != want {
					t.Fatalf("{%s}: element %d of window %d is %v, want %v", sizes, k, i, got[at], want)
				}
				at++
			}
		}
		if sizes[1] == 't' && sizes[12] == 'l' && !slices.Equal(ds.Fields[0].Dims, []string{"", "time", "lat", "lon"}) {
			t.Errorf("the axes of windows are %q", ds.Fields[0].Dims)
		}
		ds.Close()
	}

	ds, err := open(`"time": 2, "lat": 3`, part("t2m"), part("lat"), part("time"))
	require.NoError(t, err)
	v, err := ds.Source.Slice("time", 3, 4) // the windows with the origins (1, 1)
	if got := tensor.As[int64](v); err != nil || !slices.Equal(got, []int64{6, 12}) {
		t.Errorf("times %v, %v", got, err)
	}
	v, err = ds.Source.Slice("lat", 3, 4)
	if got := tensor.As[float64](v); err != nil || !slices.Equal(got, []float64{30, -30, -90}) {
		t.Errorf("latitudes %v, %v", got, err)
	}
	ds.Close()

	for sizes, want := range map[string]string{
		`"level": 2`:            "time, lat, lon of t2m",
		`"time": 2, "level": 2`: `sizes has the axis "level", which no field of the records has with a size; the axes are time`,
	} {
		if _, err := open(sizes, part("t2m")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("{%s}: %v, want %q", sizes, err, want)
		}
	}
}

// TestCoordinatesAreLeftOut opens a file without naming fields: coordinates of other axes are left out.
func TestCoordinatesAreLeftOut(t *testing.T) {
	ds, err := mmapds.Open(scales)
	require.NoError(t, err)
	defer ds.Close()
	var fields []string
	for _, f := range ds.Schema().Fields {
		fields = append(fields, f.Name)
	}
	if got := fmt.Sprint(fields); got != "[g/flag labeled t2m time]" {
		t.Errorf("fields %s", got)
	}
}
