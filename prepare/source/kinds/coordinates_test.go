package kinds

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// year is a store as xarray writes it: numbers of uint8 along time and lat, which have coordinates.
type year struct {
	since     string // epoch of time
	time, lat []int32
}

func (y year) write(t *testing.T, dir string) {
	for name, text := range map[string]string{
		".zgroup":      `{"zarr_format": 2}`,
		"time/.zattrs": fmt.Sprintf(`{"_ARRAY_DIMENSIONS": ["time"], "units": "hours since %s"}`, y.since),
		"lat/.zattrs":  `{"_ARRAY_DIMENSIONS": ["lat"]}`,
		"t2m/.zattrs":  `{"_ARRAY_DIMENSIONS": ["time", "lat"], "units": "K", "scale_factor": 0.5}`,
		"time/.zarray": zarrArray("<i4", len(y.time)),
		"lat/.zarray":  zarrArray("<i4", len(y.lat)),
		"t2m/.zarray":  zarrArray("|u1", len(y.time), len(y.lat)),
		"time/0":       string(int32s(y.time)),
		"lat/0":        string(int32s(y.lat)),
		"t2m/0.0":      string(make([]byte, len(y.time)*len(y.lat))),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
}

func zarrArray(dtype string, shape ...int) string {
	list := strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
	return fmt.Sprintf(`{"zarr_format": 2, "shape": %s, "chunks": %s, "dtype": %q, "compressor": null, "filters": null, `+
		`"fill_value": 0, "order": "C"}`, list, list, dtype)
}

func int32s(list []int32) (b []byte) {
	for _, x := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// Files that continue each other are compared in the coordinates of their axes, whether these are fields or not.
func TestCoordinatesOfFiles(t *testing.T) {
	y := func(times ...int32) year { return year{"2018", times, []int32{50, 40}} }
	flipped, moved := y(4, 5), y(0, 1)
	flipped.lat, moved.since = []int32{40, 50}, "2019"
	const order = "1.zarr: time begins at "
	for _, c := range []struct {
		years  []year
		fields string
		want   string // of the error
	}{
		{[]year{y(0, 1), y(2, 3), y(9)}, "", ""},
		{[]year{y(9, 8), y(7), y(2, 1)}, "t2m", ""},
		{[]year{y(3), y(2), y(1)}, "", ""},
		{[]year{y(0, 1), y(0, 1, 2), y(0)}, "", ""}, // runs of a simulation
		{[]year{y(0, 2, 1), y(0)}, "", ""},
		{[]year{y(0, 1), moved}, "t2m", ""},
		{[]year{y(0, 1), moved}, "", `0.zarr/time is in units "hours since 2018", and 1.zarr/time in units "hours since 2019"`},
		{[]year{y(0, 1), flipped}, "", "1.zarr: lat has other values than in 0.zarr"},
		{[]year{y(0, 1), flipped}, "t2m", "1.zarr: lat has other values than in 0.zarr"},
		{[]year{y(4, 5), y(2, 3)}, "", order + "2, which does not follow 5, the last in 0.zarr"},
		{[]year{y(4, 5), y(2, 3)}, "t2m", order + "2, which does not follow 5, the last in 0.zarr"},
		{[]year{y(0, 1, 2), y(2, 3)}, "", order + "2, which does not follow 2, the last in 0.zarr"},
		{[]year{y(1), y(2), y(0)}, "", "2.zarr: time begins at 0"},
	} {
		dir := t.TempDir()
		for i, y := range c.years {
			y.write(t, filepath.Join(dir, fmt.Sprint(i, ".zarr")))
		}
		s, err := Open(t.Context(), filepath.Join(dir, "*.zarr"), source.Options{Records: "*[:]", Fields: c.fields})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %q: %v, not %s", c.years, c.fields, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v, %q: %v", c.years, c.fields, err)
			continue
		}
		info := s.Info()
		require.NoError(t, s.Close())
		at := slices.IndexFunc(info.Fields, func(f source.Field) bool { return f.Name == "t2m" })
		if f := info.Fields[at]; !slices.Equal(f.Dims, []string{"time", "lat"}) || f.Meaning != `units "K", scale_factor 0.5` {
			t.Errorf("axes %q, in %s", f.Dims, f.Meaning)
		}
		if c := info.Coordinates; c["time"] != (source.Coordinates{Name: "time"}) || c["lat"].Name != "lat" ||
			filepath.Base(c["lat"].Path) != "0.zarr" {
			t.Errorf("coordinates %+v", c)
		}
	}
}
