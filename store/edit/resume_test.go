package edit

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/loader"
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
	if _, err := AddColumn(ds, emb, valuesOf(emb, 0), Options{}); err != nil {
		t.Fatal(err)
	}
	second := stateOf(2, "", "emb")
	if _, err := SetColumn(ds, emb, valuesOf(emb, 1), Options{}); err != nil {
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
			if err != nil {
				t.Fatal(err)
			}
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

func withLoader(t *testing.T, path string, generation int, split string, fields []string, opts loader.Options, do func(*loader.Loader)) {
	t.Helper()
	ds, err := mmapds.Open(path, mmapds.WithGeneration(generation), mmapds.WithSplit(split), mmapds.WithFields(fields...))
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	ld, err := loader.New(ds, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer ld.Close()
	do(ld)
}
