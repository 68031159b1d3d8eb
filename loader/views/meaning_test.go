package views_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/mmapds"
)

// writeTemperatures writes a Zarr store as xarray does: t2m along time and lat, which has coordinates.
func writeTemperatures(t *testing.T, dir, attributes, lat string) {
	const array = `{"zarr_format": 2, "shape": [%s], "chunks": [%[1]s], "dtype": "|u1", "compressor": null, "filters": null, ` +
		`"fill_value": 0, "order": "C"}`
	for name, text := range map[string]string{
		".zgroup":     `{"zarr_format": 2}`,
		"lat/.zattrs": `{"_ARRAY_DIMENSIONS": ["lat"]}`,
		"lat/.zarray": fmt.Sprintf(array, "2"),
		"lat/0":       lat,
		"t2m/.zattrs": `{"_ARRAY_DIMENSIONS": ["time", "lat"]` + attributes + `}`,
		"t2m/.zarray": fmt.Sprintf(array, "3, 2"),
		"t2m/0.0":     "abcdef",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
}

// Fields whose numbers mean something else are not joined, by any view.
func TestMeaning(t *testing.T) {
	dir := t.TempDir()
	const kelvin = `, "units": "K", "scale_factor": 0.5`
	for name, of := range map[string][2]string{
		"a": {kelvin, "\x01\x02"}, "same": {kelvin, "\x01\x02"}, "celsius": {`, "units": "degC", "scale_factor": 0.5`, "\x01\x02"},
		"scaled": {`, "units": "K", "scale_factor": 0.25`, "\x01\x02"}, "none": {"", "\x01\x02"}, "flipped": {kelvin, "\x02\x01"},
		"filled": {kelvin + `, "_FillValue": 255`, "\x01\x02"}, "missing": {kelvin + `, "missing_value": [254, 255]`, "\x01\x02"},
	} {
		writeTemperatures(t, filepath.Join(dir, name), of[0], of[1])
	}
	dataset(t, filepath.Join(dir, "b"), "x", 0, 3)
	for name, want := range map[string]string{
		"same":    "",
		"celsius": `is in units "K", scale_factor 0.5 there, and in units "degC", scale_factor 0.5 here`,
		"scaled":  `is in units "K", scale_factor 0.5 there, and in units "K", scale_factor 0.25 here`,
		"none":    `is in units "K", scale_factor 0.5 there, and in no units here`,
		"filled":  `is in units "K", scale_factor 0.5 there, and in units "K", scale_factor 0.5, _FillValue 255 here`,
		"missing": `and in units "K", scale_factor 0.5, missing_value [254, 255] here`,
		"flipped": "has other values of lat there than here",
	} {
		check := func(how string, err error) {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %s: %v, not %s", name, how, err, want)
			}
		}
		for _, view := range []string{
			`"concat": [{"dataset": "a"}, {"dataset": %q}]}`,
			`"concat": [{"select": {"dataset": "a"}, "rename": {"t2m": "x"}}, {"select": {"dataset": %q}, "rename": {"t2m": "x"}}]}`,
			`"concat": [{"dataset": "a"}, {"zip": [{"dataset": "b"}, {"dataset": %q}]}], "fill": {"x": 0}}`,
			`"concat": [{"window": {"dataset": "a"}, "by": {"sizes": {"time": 2}}}, {"window": {"dataset": %q}, "by": {"sizes": {"time": 2}}}]}`,
		} {
			ds, err := views.Open(t.Context(), write(t, filepath.Join(dir, "x.view.json"), head+fmt.Sprintf(view, name)), views.Options{})
			if err == nil {
				require.NoError(t, ds.Close())
			}
			check(view, err)
		}
		a, err := mmapds.Open(filepath.Join(dir, "a"))
		require.NoError(t, err)
		b, err := mmapds.Open(filepath.Join(dir, name))
		require.NoError(t, err)
		_, err = combine.NewConcat(a, b)
		check("NewConcat", err)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
}
