package prepare

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/store"
)

// sourceNames opens a dataset and returns the names of its records, which are not a field by default.
func sourceNames(t *testing.T, path string) (names []string) {
	t.Helper()
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	if i := layout.SourceNames(ds.Schema().Specs()); i >= 0 {
		t.Errorf("%s: the names are a field by default", path)
	}
	for i := range ds.Len() {
		name, err := ds.SourceName(t.Context(), i)
		require.NoError(t, err)
		names = append(names, name)
	}
	return names
}

// TestSourceNames follows the names of files through every way in which records are moved.
func TestSourceNames(t *testing.T) {
	src := rawtest.Folder(t, 12)
	want := []string{}
	for i := range 12 {
		want = append(want, []string{"cat", "dog"}[i/6]+"/"+string(rune('a'+i))+[]string{".png", ".jpg"}[i%2])
	}
	sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }

	for _, way := range []struct {
		name    string
		change  func(*Config)
		ordered bool
	}{
		{"flat", func(*Config) {}, true},
		{"encoded", func(c *Config) { c.Images.KeepEncoded, c.Images.Resize, c.Images.Crop = true, nil, nil }, true},
		{"encoded.h5", func(c *Config) { c.Images.KeepEncoded, c.Images.Resize, c.Images.Crop = true, nil, nil }, true},
		{"on.h5", func(c *Config) { c.Names = NamesOn }, true},
		{"packed.h5", func(c *Config) { c.Compress.Method = Gzip }, true},
		{"split", func(c *Config) { c.Split, _ = samples.ParseSplit("train=0.5,val=0.5") }, false},
		{"shuffled", func(c *Config) { c.Shuffle = Seed{true, 3} }, false},
		{"dedup", func(c *Config) { c.Dedup = true }, true},
	} {
		c := config(t, src)
		c.Dest = filepath.Join(t.TempDir(), way.name)
		way.change(&c)
		mustRun(t, c)
		got := sourceNames(t, c.Dest)
		if way.ordered && !slices.Equal(got, want) || !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s: %q, want %q", way.name, got, want)
		}
		if way.name == "shuffled" && slices.Equal(got, want) {
			t.Errorf("shuffled: the names have the order of the source")
		}
		if way.name == "split" {
			ds, err := mmapds.Open(c.Dest, mmapds.WithSplit("val"))
			require.NoError(t, err)
			name, err := ds.SourceName(t.Context(), 0)
			if first := got[ds.Manifest().Splits[1].Ranges[0][0]]; err != nil || name != first {
				t.Errorf("val: record 0 is called %q (%v), want %q", name, err, first)
			}
			ds.Close()
		}

		again := config(t, c.Dest) // a dataset as source carries its names on
		again.Images.Resize, again.Images.Crop, again.Fields = nil, nil, "images,labels"
		mustRun(t, again)
		if carried := sourceNames(t, again.Dest); !slices.Equal(carried, got) {
			t.Errorf("%s as a source: %q, want %q", way.name, carried, got)
		}
	}

	c := config(t, src)
	mustRun(t, c)
	c.Append = true
	mustRun(t, c)
	if got := sourceNames(t, c.Dest); !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("appended: %q", got)
	}

	c = config(t, src)
	c.Rank.Size = 2
	for c.Rank.Index = range 2 {
		mustRun(t, c)
	}
	mustMerge(t, c.Dest)
	if got := sourceNames(t, c.Dest); !slices.Equal(got, want) {
		t.Errorf("merged: %q", got)
	}
}

// Rows of numbers, which are read in blocks, get names, too, also by an append to those that have them.
func TestNamesOfRows(t *testing.T) {
	dir := t.TempDir()
	rawtest.Put(t, dir, "t.csv", []byte("a,b\n1,2\n3,4\n"))
	c := config(t, filepath.Join(dir, "t.csv"))
	c.Images.Resize, c.Images.Crop, c.Names = nil, nil, NamesOn
	mustRun(t, c)
	c.Append, c.Names = true, NamesAuto
	mustRun(t, c)
	if got, want := sourceNames(t, c.Dest), []string{"t.csv:2", "t.csv:3", "t.csv:2", "t.csv:3"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}

// TestNoSourceNames makes datasets that hold no names: on request, of rows, and in an HDF5 file whose
// records are written in place.
func TestNoSourceNames(t *testing.T) {
	src := rawtest.Folder(t, 12)
	table := filepath.Join(t.TempDir(), "t.csv")
	rawtest.Put(t, filepath.Dir(table), "t.csv", []byte("a,b\n1,2\n3,4\n"))
	for _, way := range []struct{ name, source, names string }{
		{"flat", src, NamesOff}, {"rows", table, NamesAuto}, {"direct.h5", src, NamesAuto},
	} {
		c := config(t, way.source)
		c.Dest, c.Names = filepath.Join(t.TempDir(), way.name), way.names
		if way.source == table {
			c.Images.Resize, c.Images.Crop = nil, nil
		}
		mustRun(t, c)
		d, err := store.Open(c.Dest, store.OpenOptions{})
		require.NoError(t, err)
		if layout.SourceNames(d.Schema.Specs()) >= 0 || d.SourceNames() != nil {
			t.Errorf("%s: has names", way.name)
		}
		if got := sourceNames(t, c.Dest); slices.ContainsFunc(got, func(s string) bool { return s != "" }) {
			t.Errorf("%s: %q", way.name, got)
		}
	}
	with := config(t, src)
	mustRun(t, with)
	without := config(t, with.Dest)
	without.Images.Resize, without.Images.Crop, without.Names = nil, nil, NamesOff
	mustRun(t, without)
	if got := sourceNames(t, without.Dest); got[0] != "" {
		t.Errorf("--names off of a dataset that has them: %q", got)
	}
}
