package views_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// dataset makes one whose field has the values first, first+1, ..., at a path.
func dataset(t *testing.T, path, field string, first, n int) {
	t.Helper()
	f := store.NewField(field, tensor.Int64)
	for i := range 14 {
		f.Classes = append(f.Classes, fmt.Sprint(i))
	}
	made := datasettest.BuildFlat(t, store.Schema{Fields: []store.Field{f}}, flat.Options{}, n, store.Info{}, func(i int, r *store.Record) {
		binary.LittleEndian.PutUint64(r.Values[0], uint64(first+i))
	})
	require.NoError(t, os.Rename(made, path))
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// values returns the int64 of a field.
func values(t *testing.T, ds *views.Dataset, field string) string {
	t.Helper()
	require.NoError(t, ds.Source.Retain())
	defer ds.Source.Release()
	v, err := ds.Source.Slice(field, 0, ds.Source.Len())
	require.NoError(t, err)
	return fmt.Sprint(tensor.As[int64](v))
}

// numbersSpec is that of record numbers.
var numbersSpec = tensor.Spec{Name: "n", DType: tensor.Int64, Shape: tensor.Shape{}}

const head = `{"penstock": "view", "version": 1, `

// TestOpen opens each kind of view, relative to its folder, and views of views.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	dataset(t, filepath.Join(dir, "a"), "x", 0, 6)
	dataset(t, filepath.Join(dir, "b"), "x", 10, 4)
	dataset(t, filepath.Join(dir, "n6"), "x", 4, 6)
	numbers := []byte{}
	for _, i := range []int64{3, 1} {
		numbers = binary.LittleEndian.AppendUint64(numbers, uint64(i))
	}
	npy := append(layout.Header(numbersSpec, 2), numbers...)
	write(t, filepath.Join(dir, "n.npy"), string(npy))
	write(t, filepath.Join(dir, "both.view.json"), head+`"concat": [{"dataset": "a"}, {"select": {"dataset": "b"}, "records": [3, 0]}]}`)
	for i, c := range []struct{ text, field, want string }{
		{`"dataset": "a"}`, "x", "[0 1 2 3 4 5]"},
		{`"select": {"dataset": "a"}, "ranges": [[4, 6], [0, 1]]}`, "x", "[4 5 0]"},
		{`"select": {"dataset": "a"}, "records": []}`, "x", "[]"},
		{`"select": {"dataset": "a"}, "where": "x in ('2', '5') or x < 1"}`, "x", "[0 2 5]"},
		{`"select": {"select": {"dataset": "both.view.json"}, "where": "x > 3"}, "where": "x != 5", "rename": {"x": "y"}}`, "y", "[4 13 10]"},
		{`"select": {"dataset": "a"}, "records": "n.npy"}`, "x", "[3 1]"},
		{`"select": {"dataset": "both.view.json"}, "ranges": [[5, 8]], "rename": {"x": "y"}}`, "y", "[5 13 10]"},
		{`"zip": [{"select": {"dataset": "a"}, "records": [0, 1, 2, 5]}, {"select": {"dataset": "b"}, "fields": ["x"], "rename": {"x": "z"}}]}`, "z", "[10 11 12 13]"},
		{`"window": {"dataset": "a"}, "by": {"sizes": {"0": 3}, "stride": {"0": 2}}}`, "x", "[0 1 2 2 3 4]"},
		{`"window": [{"dataset": "a"}, {"dataset": "n.npy"}], "by": {"sizes": {"0": 2}, "dims": {"n": ["m"]}, "outputs": [{"name": "n"}, {"name": "y", "of": "x", "lead": {"0": 3}}]}}`, "y", "[3 4 4 5]"},
		{`"join": [{"dataset": "both.view.json"}, {"zip": [{"dataset": "a"}, {"select": {"dataset": "n6"}, "rename": {"x": "y"}}]}], "match": {"on": "x"}}`, "y", "[4 5 6 7 8 9]"},
		{`"join": [{"dataset": "both.view.json"}, {"zip": [{"dataset": "a"}, {"select": {"dataset": "n6"}, "rename": {"x": "y"}}]}], "match": {"on": "x", "how": "left", "fill": {"y": "13"}}}`, "y", "[4 5 6 7 8 9 13 13]"},
		{`"concat": [{"dataset": "both.view.json", "fields": ["x"]}, {"dataset": "a"}]}`, "x", "[0 1 2 3 4 5 13 10 0 1 2 3 4 5]"},
	} {
		path := write(t, filepath.Join(dir, fmt.Sprintf("v%d.view.json", i)), head+c.text)
		ds, err := views.Open(t.Context(), path, views.Options{})
		require.NoError(t, err)
		if got := values(t, ds, c.field); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
		if f := ds.Fields[len(ds.Fields)-1]; f.Name != c.field || len(f.Classes) != 14 {
			t.Errorf("%s: fields %v", c.text, ds.Fields)
		}
		if id := ds.Source.(loader.Identifier).ID(); id == "" {
			t.Errorf("%s: no identity", c.text)
		}
		require.NoError(t, ds.Close())
		n, err := views.Read(path)
		require.NoError(t, err)
		again, err := json.Marshal(n)
		require.NoError(t, err)
		if _, err := views.Parse(append([]byte(head), again[1:]...)); err != nil {
			t.Errorf("%s: written as %s: %v", c.text, again, err)
		}
	}
}

// TestReplaced refuses a .npy file in the place of the one that a view was made of.
func TestReplaced(t *testing.T) {
	dir := t.TempDir()
	array := func(last byte) string {
		header := layout.Header(tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{}}, 300_000)
		return string(header) + strings.Repeat("a", 299_999) + string(last)
	}
	write(t, filepath.Join(dir, "x.npy"), array('a'))
	open := func(id string) (string, error) {
		path := write(t, filepath.Join(dir, "x.view.json"), head+`"dataset": "x.npy"`+id+`}`)
		ds, err := views.Open(t.Context(), path, views.Options{})
		if err != nil {
			return "", err
		}
		defer ds.Close()
		return ds.Source.(loader.Identifier).ID(), nil
	}
	id, err := open("")
	if err != nil || len(id) != 32 {
		t.Fatalf("id %q, %v", id, err)
	}
	if _, err := open(`, "id": "` + id + `"`); err != nil {
		t.Errorf("the same file is refused: %v", err)
	}
	write(t, filepath.Join(dir, "x.npy"), array('b'))
	if _, err := open(`, "id": "` + id + `"`); err == nil || !strings.Contains(err.Error(), "x.npy was replaced or changed after the view was made") {
		t.Errorf("another file: %v", err)
	}
}

// TestBounds has views know the limits of what they are of.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	dataset(t, filepath.Join(dir, "a"), "x", 0, 6)
	dataset(t, filepath.Join(dir, "b"), "x", 10, 4)
	path := write(t, filepath.Join(dir, "v.view.json"), head+`"concat": [{"dataset": "a"}, {"select": {"dataset": "b"}, "records": [3, 0]}]}`)
	ds, err := views.Open(t.Context(), path, views.Options{})
	require.NoError(t, err)
	defer ds.Close()
	src := ds.Source.(loader.BoundedSource)
	for _, c := range []struct {
		first, end int
		low, high  float64
	}{{0, 6, 0, 5}, {2, 4, 0, 5}, {6, 8, 10, 13}, {5, 7, 0, 13}} {
		if low, high, ok := src.Bounds("x", c.first, c.end); low != c.low || high != c.high || !ok {
			t.Errorf("records %d to %d are in %v to %v, %v; want %v to %v", c.first, c.end, low, high, ok, c.low, c.high)
		}
	}
	if _, _, ok := src.Bounds("y", 0, 1); ok {
		t.Error("a field that does not exist has limits")
	}
}

// TestRefused reports files that are not views.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	dataset(t, filepath.Join(dir, "a"), "x", 0, 6)
	self := filepath.Join(dir, "self.view.json")
	write(t, self, head+`"dataset": "self.view.json"}`)
	for i, c := range []struct{ text, want string }{
		{`{"dataset": "a"}`, `it does not have "penstock": "view"`},
		{`{"penstock": "view", "version": 2, "dataset": "a"}`, "a view of version 2; this program reads version 1"},
		{head + `"dataset": "a", "rows": 3}`, `unknown field "rows"`},
		{head + `"dataset": "a"} {}`, "more after its end"},
		{head + `"dataset": "a", "zip": []}`, `not 2: ["dataset" "zip"]`},
		{head + `"fields": ["x"]}`, "not 0: []"},
		{head + `"dataset": "a", "ranges": []}`, `"ranges" belongs to select, and not to dataset`},
		{head + `"zip": [{"penstock": "view", "dataset": "a"}]}`, `"penstock" belongs to the root`},
		{head + `"concat": [null]}`, "concat of null"},
		{head + `"window": {"dataset": "a"}}`, `a window needs "by"`},
		{head + `"window": {"dataset": "a", "what": 1}, "by": {"sizes": {"0": 3}}}`, `unknown field "what"`},
		{head + `"window": {"dataset": "a"}, "by": {"sizes": {"0": 7}}}`, "no window fits"},
		{head + `"dataset": "a", "id": "00"}`, `and had "00" when the view was made`},
		{head + `"dataset": "self.view.json"}`, "more than 8 views, each in the file of another"},
		{head + `"dataset": "missing"}`, "no such file"},
		{head + `"join": [{"dataset": "a"}, {"dataset": "a"}]}`, `a join is of a list of two views, and needs "match"`},
		{head + `"join": [{"dataset": "a"}, {"dataset": "a"}], "match": {"on": "x"}}`, "the right side has no field but the key"},
		{head + `"join": [{"dataset": "a"}, {"dataset": "a"}], "match": {"on": "x", "keep": "left"}}`, `unknown field "keep"`},
		{head + `"dataset": "a", "where": "x > 1"}`, `"where" belongs to select, and not to dataset`},
		{head + `"select": {"dataset": "a"}, "where": "y > 1"}`, "filter: column 1: there is no field \"y\"; known are x\n  y > 1\n  ^"},
		{head + `"select": {"dataset": "a"}, "where": "x > 1", "ranges": [[0, 1]]}`, "of Records, Ranges and Set more than one is given"},
		{head + `"select": {"dataset": "a"}, "ranges": [[0, 7]]}`, "the Source has 6 records"},
		{head + strings.Repeat(`"select": {`, 40) + `"dataset": "a"` + strings.Repeat("}", 41), "nested deeper than 32"},
	} {
		path := write(t, filepath.Join(dir, fmt.Sprintf("v%d.view.json", i)), c.text)
		if ds, err := views.Open(t.Context(), path, views.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			if err == nil {
				ds.Close()
			}
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}
