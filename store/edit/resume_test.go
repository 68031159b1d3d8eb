package edit

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
)

// A state of one generation can be resumed in another one if the loader's columns are the same there. Otherwise the error
// says which generation to open.
func TestStatesOfOtherGenerations(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, ds, true, pages, labels, tokens)
	opts := loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}}
	stateOf := func(generation int, split string, fields ...string) (st loader.State) {
		withLoader(t, ds, generation, split, fields, opts, func(ld *loader.Loader) {
			for range ld.Epoch(t.Context(), 0) {
				st = ld.State()
				return
			}
		})
		return st
	}
	first, ofVal := stateOf(1, "", "pages", "tokens"), stateOf(1, "val", "pages")
	if _, err := At(ds).AddColumn(emb, valuesOf(emb, 0), Options{}); err != nil {
		t.Fatal(err)
	}
	second := stateOf(2, "", "emb")
	if _, err := At(ds).SetColumn(emb, valuesOf(emb, 1), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		st         loader.State
		generation int
		split      string
		fields     string
		says       string
	}{
		{first, 3, "", "pages tokens", ""},
		{first, 1, "", "pages tokens", ""},
		{ofVal, 2, "val", "pages", ""},
		{second, 2, "", "emb", ""},
		{second, 3, "", "emb", "it is of generation 2, whose records or fields differ from those of generation 3; open"},
		{second, 3, "", "pages", ""},
		{first, 3, "", "emb", "it is of generation 1,"},
	} {
		t.Run(fmt.Sprint(c.generation, c.split, c.fields), func(t *testing.T) {
			ld, err := mmapds.Open(ds, mmapds.WithGeneration(c.generation), mmapds.WithSplit(c.split), mmapds.WithFields(strings.Fields(c.fields)...))
			require.NoError(t, err)
			defer ld.Close()
			resumed, err := loader.Resume(ld, opts, c.st)
			if err == nil {
				defer resumed.Close()
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// A state of a source made of datasets names the generations of all of them.
func TestStatesOfGenerationsOfViews(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	makeDataset(t, a, true, pages, labels)
	makeDataset(t, b, true, tokens)
	if _, err := At(a).AddColumn(emb, valuesOf(emb, 0), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := At(a).Delete(Chosen{Words: []uint64{1 << 5}}, Options{}); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(a, b loader.Source) (loader.Source, error){
		"zip":    func(a, b loader.Source) (loader.Source, error) { return combine.NewZip(a, b) },
		"concat": func(a, _ loader.Source) (loader.Source, error) { return combine.NewConcat(a, a) },
		"select": func(a, b loader.Source) (loader.Source, error) {
			v, err := combine.NewSelect(b, combine.Select{Ranges: [][2]int{{2, 9}}})
			if err != nil {
				return nil, err
			}
			w, err := combine.NewSelect(a, combine.Select{Ranges: [][2]int{{0, 7}}})
			if err != nil {
				return nil, err
			}
			return combine.NewZip(w, v)
		},
		"filter": func(a, _ loader.Source) (loader.Source, error) {
			set, err := expr.Find(t.Context(), a, "pages[0] > 3")
			if err != nil {
				return nil, err
			}
			return combine.NewSelect(a, combine.Select{Set: set})
		},
		"window": func(a, _ loader.Source) (loader.Source, error) {
			return combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": 2}}, a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts := loader.Options{BatchSize: 2}
			open := func(numbers [2]int) (loader.Source, func()) {
				x, err := mmapds.Open(a, mmapds.WithGeneration(numbers[0]), mmapds.WithFields("pages"))
				require.NoError(t, err)
				y, err := mmapds.Open(b, mmapds.WithGeneration(numbers[1]), mmapds.WithFields("tokens"))
				require.NoError(t, err)
				src, err := make(x, y)
				require.NoError(t, err)
				return src, func() { x.Close(); y.Close() }
			}
			src, closeAll := open([2]int{1, 1})
			defer closeAll()
			ld, err := loader.New(src, opts)
			require.NoError(t, err)
			defer ld.Close()
			st := ld.State()
			for _, c := range []struct {
				numbers [2]int
				says    string
			}{{[2]int{2, 1}, ""}, {[2]int{3, 1}, a + "@1"}} {
				if c.says != "" && name == "zip" {
					continue // one has fewer records, which a zip refuses
				}
				src, closeAll := open(c.numbers)
				resumed, err := loader.Resume(src, opts, st)
				if err == nil {
					resumed.Close()
				}
				closeAll()
				if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "3")) {
					t.Errorf("generations %d: %v, want %q", c.numbers, err, c.says)
				}
			}
		})
	}
}

func withLoader(t *testing.T, path string, generation int, split string, fields []string, opts loader.Options, do func(*loader.Loader)) {
	t.Helper()
	ds, err := mmapds.Open(path, mmapds.WithGeneration(generation), mmapds.WithSplit(split), mmapds.WithFields(fields...))
	require.NoError(t, err)
	defer ds.Close()
	ld, err := loader.New(ds, opts)
	require.NoError(t, err)
	defer ld.Close()
	do(ld)
}
