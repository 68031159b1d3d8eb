package hdf5

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

func TestFewerRecords(t *testing.T) { eachContainer(t, testFewerRecords) }

func testFewerRecords(t *testing.T) {
	for name, s := range map[string]store.Schema{"images": imageSchema(40, 40), "small": imageSchema(3, 3), "types": everyType()} {
		t.Run(name, func(t *testing.T) {
			exact := read(t, buildFile(t, s, 41, 41, store.Info{}))
			fewer := read(t, buildFile(t, s, 41, 3000, store.Info{}))
			if !bytes.Equal(exact, fewer) {
				t.Errorf("%d bytes, and %d with room for more records: not the same", len(exact), len(fewer))
			}
		})
	}
}

func TestMoreRecords(t *testing.T) { eachContainer(t, testMoreRecords) }

func testMoreRecords(t *testing.T) {
	s := imageSchema(4, 4)
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "x.h5"), s, Options{Records: 3})
	require.NoError(t, err)
	defer w.Close()
	appendAll(t, w, s, 3)
	err = w.Append(store.NewRecord(s))
	if err == nil || !strings.Contains(err.Error(), "record 3") {
		t.Errorf("a record too many: %v", err)
	}
	if _, err2 := w.Commit(store.Info{}); err2 != err {
		t.Errorf("Commit after an error: %v", err2)
	}
}

func TestCloseRemovesEverything(t *testing.T) { eachContainer(t, testCloseRemovesEverything) }

func testCloseRemovesEverything(t *testing.T) {
	s := imageSchema(4, 4)
	for _, n := range []int{0, 5} {
		dir := t.TempDir()
		w, err := Create(filepath.Join(dir, "x.h5"), s, Options{Records: 10})
		require.NoError(t, err)
		appendAll(t, w, s, n)
		if n == 0 {
			if _, err := w.Commit(store.Info{}); err == nil {
				t.Error("a dataset without records was committed")
			}
		}
		for range 2 {
			require.NoError(t, w.Close())
		}
		if err := w.Append(store.NewRecord(s)); err == nil {
			t.Error("Append after Close")
		}
		if left := entries(t, dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestCommitPublishes(t *testing.T) { eachContainer(t, testCommitPublishes) }

func testCommitPublishes(t *testing.T) {
	s := imageSchema(4, 4)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.h5")
	w, err := Create(path, s, Options{Records: 4})
	require.NoError(t, err)
	appendAll(t, w, s, 4)
	if _, err := os.Stat(path); err == nil {
		t.Error("the file exists before Commit")
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(store.Info{}); err == nil {
		t.Error("two Commits")
	}
	require.NoError(t, w.Close())
	plain := filepath.Join(t.TempDir(), "plain") // read-only, with what the umask leaves
	require.NoError(t, os.WriteFile(plain, nil, 0o444))
	if got, want := mode(t, path), mode(t, plain); got != want {
		t.Errorf("mode %v, want %v", got, want)
	}
	if left := entries(t, dir); !slices.Equal(left, []string{"x.h5"}) {
		t.Errorf("found %v", left)
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode()
}

func TestOverwrite(t *testing.T) { eachContainer(t, testOverwrite) }

func testOverwrite(t *testing.T) {
	path := buildFile(t, imageSchema(4, 4), 4, 4, store.Info{})
	before := read(t, path)
	s := imageSchema(5, 5)
	if _, err := Create(path, s, Options{Records: 2}); !errors.Is(err, store.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	w, err := Create(path, s, Options{Records: 2, Overwrite: true})
	require.NoError(t, err)
	defer w.Close()
	if _, err := Create(path, s, Options{Records: 2, Overwrite: true}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a second builder: %v", err)
	}
	appendAll(t, w, s, 2)
	if !bytes.Equal(read(t, path), before) {
		t.Error("changed before Commit")
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(read(t, path), before) {
		t.Error("not changed by Commit")
	}
}

func TestRefused(t *testing.T) { eachContainer(t, testRefused) }

func testRefused(t *testing.T) {
	huge := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Float64, 1<<18, 1<<18)}}
	wide := store.Schema{}
	for _, name := range strings.Split("abcdefgh", "") {
		wide.Fields = append(wide.Fields, store.NewField(name, tensor.Uint8, 1<<39))
	}
	for name, c := range map[string]struct {
		schema  store.Schema
		records int64
		says    string
	}{
		"no fields":        {store.Schema{}, 1, "fields"},
		"minus records":    {imageSchema(2, 2), -1, "-1 records"},
		"too many":         {imageSchema(2, 2), math.MaxInt64, "more than a file can hold"},
		"too large":        {huge, 1 << 30, "more than a file can hold"},
		"too large in all": {wide, 1 << 21, "more than a file can hold"},
		"reserved name":    {store.Schema{Fields: []store.Field{store.NewField("penstock", tensor.Uint8)}}, 1, "another one"},
	} {
		dir := t.TempDir()
		_, err := Create(filepath.Join(dir, "x.h5"), c.schema, Options{Records: c.records})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "store: create ") {
			t.Errorf("%s: %v", name, err)
		}
		if left := entries(t, dir); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

func TestManifest(t *testing.T) { eachContainer(t, testManifest) }

func testManifest(t *testing.T) {
	s := imageSchema(6, 5)
	info := store.Info{
		Recipe:                &store.Recipe{Program: "test 1", Options: map[string]string{"a": "ü"}},
		Source:                &store.SourceInfo{Kind: "imagefolder", Name: "raw", Samples: 9, Bytes: 99},
		Skipped:               []store.Skipped{{Sample: "a/b.jpg", Reason: "truncated"}},
		NormalizeByStatistics: true,
	}
	dir := t.TempDir()
	flat, err := flat.Create(filepath.Join(dir, "flat"), s, flat.Options{})
	require.NoError(t, err)
	file, err := Create(filepath.Join(dir, "x.h5"), s, Options{Records: 12})
	require.NoError(t, err)
	var got [2]*store.Manifest
	for i, w := range []store.Writer{flat, file} {
		appendAll(t, w, s, 8)
		if got[i], err = w.Commit(info); err != nil {
			t.Fatal(err)
		}
	}
	got[0].Shards = nil
	if !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("flat:\n%+v\nHDF5:\n%+v", got[0], got[1])
	}
}
