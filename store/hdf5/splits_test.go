package hdf5

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

var trainVal = []string{"train", "val"}

// makeSplits writes records a to b into path, and checks that nothing else is next to it.
func makeSplits(t testing.TB, path string, a, b int, opts Options) *store.Manifest {
	t.Helper()
	split := noSplit
	if opts.Splits != nil {
		split = trainOrVal
	}
	m := raggedNumbered(split).write(t, path, a, b, opts, store.Info{})
	if left := entries(t, filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	return m
}

// inSplit lists the numbers from a to b that a split has.
func inSplit(a, b int, name string) (list []int) {
	for i := a; i < b; i++ {
		if trainOrVal(i) == name {
			list = append(list, i)
		}
	}
	return list
}

// checkRagged compares the ragged fields and labels of ds with those of records in that order.
func checkRagged(t *testing.T, ds *mmapds.Dataset, order []int) {
	t.Helper()
	if ds.Len() != len(order) {
		t.Fatalf("%d records, want %d", ds.Len(), len(order))
	}
	values, _ := ragged(order)
	offsets := make([]int64, len(order)+1)
	for k, f := range raggedSchema().Fields[:4] {
		v, err := ds.SliceRagged(f.Name, 0, len(order), offsets)
		if err != nil || !bytes.Equal(v.Bytes(), values[k]) {
			t.Errorf("%s: other values: %v", f.Name, err)
		}
	}
	v, err := ds.Slice("labels", 0, len(order))
	require.NoError(t, err)
	for i, x := range tensor.As[int64](v) {
		if int(x) != order[i] {
			t.Fatalf("record %d is number %d, want %d", i, x, order[i])
		}
	}
}

// Splits and appends, read by mmapds; and the same dataset as the flat one.
func TestSplitsAndAppend(t *testing.T) { eachContainer(t, testSplitsAndAppend) }

func testSplitsAndAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	makeSplits(t, path, 0, 700, Options{Splits: trainVal})
	before, err := mmapds.Open(path)
	require.NoError(t, err)
	defer before.Close()
	m := makeSplits(t, path, 700, 1000, Options{Splits: trainVal, Append: true})
	folder := filepath.Join(t.TempDir(), "flat")
	w, err := flat.Create(folder, raggedSchema(), flat.Options{Splits: trainVal})
	require.NoError(t, err)
	defer w.Close()
	raggedNumbered(trainOrVal).add(t, w, 0, 1000)
	once, err := w.Commit(store.Info{})
	require.NoError(t, err)
	if m.Change == nil || m.Change.Operation != "append" {
		t.Errorf("the change is %+v, and not an append", m.Change)
	}
	if m.ID != once.ID || !reflect.DeepEqual(m.Statistics, once.Statistics) || m.Generation != 2 {
		t.Error("identity or statistics differ from those of a flat dataset that was written at once")
	}
	order := append(inSplit(0, 700, "train"), inSplit(0, 700, "val")...)
	checkRagged(t, before, order)
	order = append(append(order, inSplit(700, 1000, "train")...), inSplit(700, 1000, "val")...)
	after, err := mmapds.Open(path)
	require.NoError(t, err)
	defer after.Close()
	checkRagged(t, after, order)
	if v, err := verify.Dataset(t.Context(), after.Files(), verify.Options{}); err != nil || v.Corruptions != 0 || !v.Identity {
		t.Errorf("%+v, %v", v, err)
	}
	for _, name := range trainVal {
		for _, path := range []string{path, folder} {
			part, err := mmapds.Open(path, mmapds.WithSplit(name))
			require.NoError(t, err)
			checkRagged(t, part, inSplit(0, 1000, name))
			if v, err := verify.Dataset(t.Context(), part.Files(), verify.Options{}); err != nil || v.Corruptions != 0 || v.Identity {
				t.Errorf("%+v, %v", v, err)
			}
			require.NoError(t, part.Close())
		}
	}
}

// An append to what was written directly, with checksum blocks that do not end where the
// first records do.
func TestAppendToFixed(t *testing.T) { eachContainer(t, testAppendToFixed) }

func testAppendToFixed(t *testing.T) {
	s := imageSchema(7, 7)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.h5")
	filled(s).write(t, path, 0, 501, Options{Records: 600}, store.Info{})
	filled(s).write(t, path, 501, 1007, Options{Append: true}, store.Info{})
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	for name, want := range contents(s, 1007) {
		if v, err := ds.Slice(name, 0, 1007); err != nil || !bytes.Equal(v.Bytes(), want) {
			t.Errorf("%s: other values, %v", name, err)
		}
	}
	if v, err := verify.Dataset(t.Context(), ds.Files(), verify.Options{}); err != nil || v.Corruptions != 0 || !v.Identity {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := Create(filepath.Join(dir, "none.h5"), s, Options{Append: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing to append to: %v", err)
	}
}
