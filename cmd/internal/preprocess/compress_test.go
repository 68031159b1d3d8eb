package preprocess

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/preprocess/field"
	"github.com/penstock/penstock/cmd/internal/preprocess/samples"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

func TestCompressFlags(t *testing.T) {
	for line, want := range map[string]Compress{
		"a b.h5":                 {},
		"a b --compress none":    {},
		"a b.h5 --compress gzip": {On: true},
		"a b.zarr --compress zstd:19 --chunk-records 32":         {Zstd: true, Level: 19, ChunkRecords: 32},
		"a b.h5 --compress gzip:9 --chunk-records 32":            {On: true, Level: 9, ChunkRecords: 32},
		"a b.h5 --compress gzip --chunk-bytes 1MiB":              {On: true, ChunkBytes: 1 << 20},
		"a b --format hdf5 --compress gzip:1 --shuffle-bytes on": {On: true, Level: 1, Shuffle: "on"},
	} {
		c, err := parseFlags(t, line)
		if err != nil || c.Compress != want {
			t.Errorf("%s: %+v, %v", line, c.Compress, err)
		}
	}
	for line, want := range map[string]string{
		"a b --compress gzip":                                      "--compress: is for HDF5 files and Zarr, such as DEST.h5 or DEST.zarr; a flat dataset is mapped as it is",
		"a b.h5 --compress lzf":                                    "--compress lzf: must be none, gzip, gzip:1 to gzip:9, zstd, or zstd:1 to zstd:22",
		"a b.h5 --compress zstd":                                   "--compress zstd: an HDF5 file takes gzip",
		"a b.zarr --compress gzip":                                 "--compress gzip: Zarr takes zstd",
		"a b.h5 --compress gzip:0":                                 "--compress gzip:0: the level must be from 1 to 9",
		"a b.h5 --compress gzip:x":                                 "--compress gzip:x: the level must be from 1 to 9",
		"a b.h5 --chunk-records 4":                                 "--chunk-records, --chunk-bytes, --shuffle-bytes: say how to --compress, which is not given",
		"a b.h5 --compress gzip --chunk-records 0":                 "--chunk-records 0: must be a whole number above 0",
		"a b.h5 --compress gzip --chunk-bytes some":                "--chunk-bytes some: must be a whole number above 0",
		"a b.h5 --compress gzip --chunk-records 2 --chunk-bytes 5": "--chunk-records and --chunk-bytes: choose one",
		"a b.h5 --compress gzip --shuffle-bytes maybe":             "--shuffle-bytes maybe: must be one of auto, on, off",
		"a b.h5 --append --compress gzip --resize 8":               "--append and --compress: records are stored as those are that are there; leave --compress, --chunk-records, --chunk-bytes and --shuffle-bytes out",
	} {
		if _, err := parseFlags(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// recorded is a Progress that records its calls.
type recorded struct {
	silent
	notes, stages []string
}

func (n *recorded) Note(text string)                     { n.notes = append(n.notes, text) }
func (n *recorded) Begin(what string, _ int64, _ string) { n.stages = append(n.stages, what) }

func locate(t *testing.T, path string) *store.Dataset {
	t.Helper()
	d, err := store.Open(path, store.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func needHDF5(t *testing.T) {
	t.Helper()
}

// A compressed file has the id of the flat dataset, the same bytes for any number of workers,
// and says in recipe, manifest and summary how it was made.
func TestCompressed(t *testing.T) {
	needHDF5(t)
	c := config(t, folder(t, 40))
	flat := mustRun(t, c)
	c.Compress = Compress{On: true, Level: 6, ChunkRecords: 3}
	var want []byte
	for _, workers := range []int{1, 2, 8} {
		c.Dest, c.Workers = filepath.Join(t.TempDir(), "x.h5"), workers
		p := new(recorded)
		s, err := Run(t.Context(), c, p)
		if err != nil {
			t.Fatal(err)
		}
		a := s.Storage["images"]
		if s.ID != flat.ID || len(s.Storage) != 1 || a == nil || a.Level != 6 || a.ChunkRows != 3 || a.Stored >= a.Bytes || a.Bytes != 40*16*16*3 {
			t.Errorf("%+v %+v", s, a)
		}
		var out strings.Builder
		if err := s.Print(&out); err != nil || !strings.Contains(out.String(), "stored   images: ") || !strings.Contains(out.String(), "by gzip level 6 without shuffle, 3 rows a chunk") {
			t.Errorf("%v\n%s", err, &out)
		}
		if len(p.notes) == 0 || !strings.Contains(p.notes[len(p.notes)-1], "images: compressed by gzip level 6, 3 rows") || p.stages[len(p.stages)-1] != "compressing" {
			t.Errorf("notes %q, stages %q", p.notes, p.stages)
		}
		options := locate(t, c.Dest).Manifest.Recipe.Options
		if options["compress"] != "gzip:6" || options["chunk-records"] != "3" || options["shuffle-bytes"] != "" {
			t.Errorf("recipe %v", options)
		}
		got, err := os.ReadFile(c.Dest)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if string(got) != string(want) {
			t.Errorf("%d workers make other bytes", workers)
		}
	}
}

// A compressed file becomes a flat dataset, another compressed one, one in random order, and
// is appended to; its records stay what they are.
func TestRepack(t *testing.T) {
	needHDF5(t)
	source := folder(t, 40)
	c := config(t, source)
	flat := mustRun(t, c)
	c.Dest, c.Compress = filepath.Join(t.TempDir(), "x.h5"), Compress{On: true, ChunkRecords: 7}
	mustRun(t, c)
	again := DefaultConfig()
	again.Normalize, _ = field.ParseNormalize("none")
	again.Source = c.Dest
	for name, compress := range map[string]Compress{"flat": {}, "plain.h5": {}, "packed.h5": {On: true, Level: 1, ChunkBytes: 5000}} {
		again.Dest, again.Compress = filepath.Join(t.TempDir(), name), compress
		if s := mustRun(t, again); s.ID != flat.ID {
			t.Errorf("%s: another id", name)
		}
	}
	again.Shuffle = Seed{true, 7}
	again.Dest, again.Compress = filepath.Join(t.TempDir(), "a"), Compress{}
	one := mustRun(t, again)
	again.Dest, again.Compress = filepath.Join(t.TempDir(), "b.h5"), Compress{On: true}
	if two := mustRun(t, again); one.ID != two.ID || two.Storage["images"] == nil {
		t.Errorf("%+v and %+v", one, two)
	}
	c.Compress, c.Append = Compress{}, true
	s := mustRun(t, c)
	if s.Records != 80 || s.Storage["images"] == nil || s.Storage["images"].ChunkRows != 7 {
		t.Errorf("%+v", s)
	}
	v, err := verify.Dataset(t.Context(), locate(t, c.Dest), verify.Options{})
	if err != nil || v.Corruptions != 0 || !v.Identity {
		t.Errorf("%+v, %v", v, err)
	}
}

// Statistics, normalization and bad samples are those of the flat dataset.
func TestCompressedMetadata(t *testing.T) {
	needHDF5(t)
	source := folder(t, 30)
	put(t, source, "cat/bad.png", []byte("no image"))
	c := config(t, source)
	c.Skip = true
	c.Normalize, _ = field.ParseNormalize("dataset")
	c.Split, _ = samples.ParseSplit("train=0.7,val=0.3")
	for _, dtype := range []string{"uint8", "float32"} {
		if err := c.DType.UnmarshalText([]byte(dtype)); err != nil {
			t.Fatal(err)
		}
		c.Compress, c.Dest = Compress{}, filepath.Join(t.TempDir(), "ds")
		mustRun(t, c)
		want := manifest(t, c.Dest)
		c.Compress, c.Dest = Compress{On: true}, filepath.Join(t.TempDir(), "ds.h5")
		s := mustRun(t, c)
		got := locate(t, c.Dest).Manifest
		if got.ID != want.ID || !reflect.DeepEqual(got.Statistics, want.Statistics) || !reflect.DeepEqual(got.Fields, want.Fields) ||
			!reflect.DeepEqual(got.Splits, want.Splits) || !reflect.DeepEqual(got.Skipped, want.Skipped) || len(s.Skipped) != 1 {
			t.Errorf("%s: %+v, flat %+v", dtype, got, want)
		}
		delete(got.Recipe.Options, "compress")
		if !maps.Equal(got.Recipe.Options, want.Recipe.Options) {
			t.Errorf("%s: recipe %v, flat %v", dtype, got.Recipe.Options, want.Recipe.Options)
		}
	}
}

// stopping is a Progress that stops the run when it begins to compress.
type stopping struct {
	silent
	stop func()
}

func (s *stopping) Begin(what string, _ int64, _ string) {
	if what == "compressing" {
		s.stop()
	}
}

// A run that is stopped while it compresses can be resumed from what it has.
func TestCompressStopped(t *testing.T) {
	needHDF5(t)
	c := config(t, folder(t, 40))
	c.Compress, c.Checkpoint = Compress{On: true, ChunkRecords: 2}, 1
	c.Dest = filepath.Join(t.TempDir(), "x.h5")
	mustRun(t, c)
	want := foldertest.Files(t, c.Dest)
	c.Dest = filepath.Join(t.TempDir(), "x.h5")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stopped := errors.New("stopped")
	_, err := Run(ctx, c, &stopping{stop: func() { cancel(stopped) }})
	if !errors.Is(err, stopped) || !strings.Contains(err.Error(), "--resume goes on") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(c.Dest); err == nil {
		t.Error("it is there all the same")
	}
	c.Resume = true
	if s := mustRun(t, c); s.Resumed != 40 || !maps.Equal(foldertest.Files(t, c.Dest), want) {
		t.Errorf("%+v, or other bytes than without", s)
	}
}

// A recipe with compression makes flat datasets, too, and appends.
func TestCompressInRecipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "recipe.yaml")
	if err := os.WriteFile(file, []byte("options:\n  compress: gzip:7\n  chunk-records: 5\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Compress{
		"a b.h5 --pipeline " + file:                   {On: true, Level: 7, ChunkRecords: 5},
		"a b.h5 --compress gzip:2 --pipeline " + file: {On: true, Level: 2, ChunkRecords: 5},
		"a b --pipeline " + file:                      {},
		"a b.h5 --append --pipeline " + file:          {},
	} {
		c, err := parseFlags(t, line)
		if err != nil || c.Compress != want {
			t.Errorf("%s: %+v, %v", line, c.Compress, err)
		}
	}
}
