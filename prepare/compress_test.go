package prepare

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

// recorded is a Progress that records its calls.
type recorded struct {
	rawtest.Silent
	notes, stages []string
}

func (n *recorded) Note(text string)                     { n.notes = append(n.notes, text) }
func (n *recorded) Begin(what string, _ int64, _ string) { n.stages = append(n.stages, what) }

func locate(t *testing.T, path string) *store.Dataset {
	t.Helper()
	d, err := store.Open(path, store.OpenOptions{})
	require.NoError(t, err)
	return d
}

// A compressed file has the id of the flat dataset, the same bytes for any number of workers,
// and says in recipe, manifest and summary how it was made.
func TestCompressed(t *testing.T) {
	c := config(t, rawtest.Folder(t, 40))
	flat := mustRun(t, c)
	c.Compress = Compress{Method: Gzip, Level: 6, ChunkRecords: 3}
	var want []byte
	for _, workers := range []int{1, 2, 8} {
		c.Dest, c.Workers = filepath.Join(t.TempDir(), "x.h5"), workers
		p := new(recorded)
		s, err := Run(t.Context(), c, p)
		require.NoError(t, err)
		a := s.Storage["images"]
		if s.ID != flat.ID || len(s.Storage) != 1 || a == nil || a.Level != 6 || a.ChunkRows != 3 || a.Stored >= a.Bytes || a.Bytes != 40*16*16*3 {
			t.Errorf("%+v %+v", s, a)
		}
		if len(p.notes) == 0 || !strings.Contains(p.notes[len(p.notes)-1], "images: compressed by gzip level 6, 3 rows") || p.stages[len(p.stages)-1] != "compressing" {
			t.Errorf("notes %q, stages %q", p.notes, p.stages)
		}
		options := locate(t, c.Dest).Manifest.Recipe.Options
		if options["compress"] != "gzip:6" || options["chunk-records"] != "3" || options["shuffle-bytes"] != "" {
			t.Errorf("recipe %v", options)
		}
		got, err := os.ReadFile(c.Dest)
		require.NoError(t, err)
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
	source := rawtest.Folder(t, 40)
	c := config(t, source)
	flat := mustRun(t, c)
	c.Dest, c.Compress = filepath.Join(t.TempDir(), "x.h5"), Compress{Method: Gzip, ChunkRecords: 7}
	mustRun(t, c)
	again := DefaultConfig()
	again.Images.Normalize, _ = ParseNormalize("none")
	again.Source = c.Dest
	for name, compress := range map[string]Compress{"flat": {}, "plain.h5": {}, "packed.h5": {Method: Gzip, Level: 1, ChunkBytes: 5000}} {
		again.Dest, again.Compress = filepath.Join(t.TempDir(), name), compress
		if s := mustRun(t, again); s.ID != flat.ID {
			t.Errorf("%s: another id", name)
		}
	}
	again.Shuffle = Seed{true, 7}
	again.Dest, again.Compress = filepath.Join(t.TempDir(), "a"), Compress{}
	one := mustRun(t, again)
	again.Dest, again.Compress = filepath.Join(t.TempDir(), "b.h5"), Compress{Method: Gzip}
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
	source := rawtest.Folder(t, 30)
	rawtest.Put(t, source, "cat/bad.png", []byte("no image"))
	c := config(t, source)
	c.Skip = true
	c.Images.Normalize, _ = ParseNormalize("dataset")
	c.Split, _ = ParseSplit("train=0.7,val=0.3")
	for _, dtype := range []string{"uint8", "float32"} {
		require.NoError(t, c.Images.DType.UnmarshalText([]byte(dtype)))
		c.Compress, c.Dest = Compress{}, filepath.Join(t.TempDir(), "ds")
		mustRun(t, c)
		want := rawtest.Manifest(t, c.Dest)
		c.Compress, c.Dest = Compress{Method: Gzip}, filepath.Join(t.TempDir(), "ds.h5")
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
	rawtest.Silent
	stop func()
}

func (s *stopping) Begin(what string, _ int64, _ string) {
	if what == "compressing" {
		s.stop()
	}
}

// A run that is stopped while it compresses can be resumed from what it has.
func TestCompressStopped(t *testing.T) {
	c := config(t, rawtest.Folder(t, 40))
	c.Compress, c.Checkpoint = Compress{Method: Gzip, ChunkRecords: 2}, 1
	c.Dest = filepath.Join(t.TempDir(), "x.h5")
	mustRun(t, c)
	want := foldertest.Files(t, c.Dest)
	c.Dest = filepath.Join(t.TempDir(), "x.h5")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stopped := errors.New("stopped")
	_, err := Run(ctx, c, &stopping{stop: func() { cancel(stopped) }})
	if !errors.Is(err, stopped) || !strings.Contains(err.Error(), "--resume continues") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(c.Dest); err == nil {
		t.Error("it exists all the same")
	}
	c.Resume = true
	if s := mustRun(t, c); s.Resumed != 40 || !maps.Equal(foldertest.Files(t, c.Dest), want) {
		t.Errorf("%+v, or other bytes than without", s)
	}
}
