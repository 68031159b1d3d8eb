package kinds

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

const zarrFiles = "../../../internal/zarr/testdata/"

// A zip file of Zarr is a source, in order and by record; the values are those that package zarr compares.
func TestZarrZip(t *testing.T) {
	s := mustOpen(t, zarrFiles+"zarr-3-uint8-plain.zip", source.Options{})
	defer s.Close()
	info := s.Info()
	if info.Kind != "zarr" || info.Count != 23 || len(info.Fields) != 1 || info.Fields[0].RecordBytes() != 30 {
		t.Fatalf("%+v", info)
	}
	i := 0
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		v := source.NewValues(1)
		require.NoError(t, sample.Data.Read(v))
		again, err := s.(source.Indexed).Sample(int64(i))
		require.NoError(t, err)
		w := source.NewValues(1)
		if err := again.Data.Read(w); err != nil || !bytes.Equal(v.Get(0), w.Get(0)) {
			t.Fatalf("record %d: %v", i, err)
		}
		for k, x := range v.Get(0) {
			if want := byte((i*30 + k) * 37 % 120); x != want {
				t.Fatalf("record %d, byte %d: %d, not %d", i, k, x, want)
			}
		}
		i++
	}
	if i != 23 {
		t.Errorf("%d records", i)
	}
}

// group is a hierarchy with arrays of two lengths, and one of strings.
func group(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "x.zarr")
	for name, text := range map[string]string{
		".zgroup":       `{"zarr_format": 2}`,
		"a/.zarray":     `{"zarr_format": 2, "shape": [3, 2], "chunks": [2, 2], "dtype": "|u1", "compressor": null, "filters": null, "fill_value": 9, "order": "C"}`,
		"a/0.0":         "abcd",
		"b/.zgroup":     `{"zarr_format": 2}`,
		"b/c/.zarray":   `{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<i4", "compressor": null, "filters": null, "fill_value": 5, "order": "C"}`,
		"lat/.zarray":   `{"zarr_format": 2, "shape": [7], "chunks": [3], "dtype": "<i4", "compressor": null, "filters": null, "fill_value": 5, "order": "C"}`,
		"texts/.zarray": `{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "|O", "compressor": null, "filters": [{"id": "vlen-utf8"}], "fill_value": "", "order": "C"}`,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	return dir
}

// A folder is recognized by its metadata; what was never written has the fill value.
func TestZarrGroup(t *testing.T) {
	dir := group(t)
	s := mustOpen(t, dir, source.Options{Fields: "a,b/c=n"})
	defer s.Close()
	var got []byte
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		v := source.NewValues(2)
		require.NoError(t, sample.Data.Read(v))
		got = append(append(got, v.Get(0)...), v.Get(1)[0])
	}
	if string(got) != "ab\x05cd\x05\x09\x09\x05" || s.Info().Fields[1].Name != "n" {
		t.Errorf("%q, %v", got, s.Info().Fields)
	}
}

// An array that cannot become a field is an error if it is asked for, with a remedy; so are several lengths.
func TestZarrErrors(t *testing.T) {
	dir := group(t)
	for fields, want := range map[string]string{
		"texts":     `texts: data type "|O": not supported; if it holds numbers, write it without that: python3 -c`,
		"":          "texts: ",
		"a,b/c,lat": "arrays of several lengths: a has 3, b/c has 3, lat has 7; choose arrays of one length: --fields a,b/c; or write sequences and their offsets with penstock.Writer, one record each",
		"x":         `there is no "x"`,
	} {
		_, err := Open(t.Context(), dir, source.Options{Fields: fields})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--fields %q: %v", fields, err)
		}
	}
}

// An array of numbers or strings that is not read is an error: the labels next to it alone are not the dataset. A
// scalar is left out.
func TestZarrWithUnreadArrays(t *testing.T) {
	for what, c := range map[string]struct{ metadata, want string }{
		"filter": {`{"zarr_format": 2, "shape": [3, 2], "chunks": [3, 2], "dtype": "|u1", "compressor": null, "filters": [{"id": "delta", "dtype": "|u1"}], "fill_value": 0, "order": "C"}`, "images: "},
		"codec":  {`{"zarr_format": 2, "shape": [3, 2], "chunks": [3, 2], "dtype": "|u1", "compressor": {"id": "lzma"}, "filters": null, "fill_value": 0, "order": "C"}`, "images: "},
		"texts":  {`{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "|O", "compressor": null, "filters": [{"id": "vlen-utf8"}], "fill_value": "", "order": "C"}`, "images: "},
		"other":  {`{"zarr_format": 2, "shape": [5, 2], "chunks": [3, 2], "dtype": "|u1", "compressor": {"id": "lzma"}, "filters": null, "fill_value": 0, "order": "C"}`, "images: "},
		"scalar": {`{"zarr_format": 2, "shape": [], "chunks": [], "dtype": "<i4", "compressor": null, "filters": null, "fill_value": 0, "order": "C"}`, ""},
	} {
		dir := filepath.Join(t.TempDir(), "x.zarr")
		for name, text := range map[string]string{
			".zgroup":        `{"zarr_format": 2}`,
			"images/.zarray": c.metadata,
			"labels/.zarray": `{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<i4", "compressor": null, "filters": null, "fill_value": 5, "order": "C"}`,
		} {
			path := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		}
		s, err := Open(t.Context(), dir, source.Options{})
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--fields labels") {
				t.Errorf("%s: error %v", what, err)
			}
		case err != nil || len(s.Info().Hints) != 1:
			t.Errorf("%s: %v", what, err)
		}
		mustOpen(t, dir, source.Options{Fields: "labels"}).Close()
	}
}
