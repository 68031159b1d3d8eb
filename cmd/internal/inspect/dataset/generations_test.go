package dataset

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

var animals = datasettest.SchemaOf(tensor.Uint8, tensor.CHW, "cat", "dog", "owl")

// build makes a dataset of 6 records.
func build(t *testing.T) string {
	return datasettest.Build(t, animals, 6, store.Info{}, datasettest.FillAnimal)
}

// apply makes one change after the other.
func apply(t *testing.T, changes ...func() (*store.Manifest, error)) {
	t.Helper()
	for _, change := range changes {
		if _, err := change(); err != nil {
			t.Fatal(err)
		}
	}
}

func rename(path, from, to string) func() (*store.Manifest, error) {
	return func() (*store.Manifest, error) { return edit.RenameColumn(path, from, to, edit.Options{}) }
}

func restore(path, generation string) func() (*store.Manifest, error) {
	return func() (*store.Manifest, error) { return edit.Restore(path, generation, edit.Options{}) }
}

// compared returns the difference between two generations.
func compared(t *testing.T, path string, before, after int) *Changes {
	t.Helper()
	var manifests []*store.Manifest
	for _, n := range []int{before, after} {
		m, _, err := store.ReadGeneration(path, n)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, m)
	}
	c, err := Compare(path, manifests[0], manifests[1])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompare(t *testing.T) {
	path := build(t)
	weight := store.NewField("weight", tensor.Uint8)
	values := func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := first; i < 6 && yield([]byte{byte(i)}, nil); i++ {
			}
		}
	}
	deleted, err := edit.Choose(path, 0, []int64{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, func() (*store.Manifest, error) { return edit.AddColumn(path, weight, values, edit.Options{}) },
		rename(path, "images", "pictures"),
		func() (*store.Manifest, error) { return edit.DropColumn(path, []string{"labels"}, edit.Options{}) },
		func() (*store.Manifest, error) { return edit.Delete(path, deleted, edit.Options{}) })
	pictures, added := Column{"images", "pictures", true}, Column{"", "weight", false}
	want := &Changes{Columns: []Column{pictures, added, {"labels", "", false}}, Deleted: 2}
	if c := compared(t, path, 1, 5); !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, want %+v", c, want)
	}
	apply(t, func() (*store.Manifest, error) { return edit.Undelete(path, deleted, edit.Options{}) })
	if c := compared(t, path, 5, 6); c.Restored != 2 || c.Deleted+c.Appended != 0 {
		t.Errorf("%+v", c)
	}
}

// After a restore of an earlier generation, records that are appended are other records in the same places.
func TestCompareRecordsInTheSamePlaces(t *testing.T) {
	path := build(t)
	appended := func() (*store.Manifest, error) {
		w, err := flat.Create(path, animals, flat.Options{Append: true})
		if err != nil {
			return nil, err
		}
		defer w.Close()
		for range 4 {
			if err := w.Append(store.NewRecord(animals)); err != nil {
				return nil, err
			}
		}
		return w.Commit(store.Info{})
	}
	apply(t, appended, restore(path, "1"), appended)
	if c := compared(t, path, 2, 4); c.Appended != 4 || c.Deleted != 4 || c.Restored != 0 {
		t.Errorf("%+v", c)
	}
}

// A restore takes the names of columns back, also the names in generations before the first one that is asked for.
func TestRenamed(t *testing.T) {
	path := build(t)
	apply(t, rename(path, "labels", "a"), rename(path, "a", "b"), restore(path, "1"))
	for _, c := range []struct {
		from, to   int
		name, want string
	}{{1, 3, "labels", "b"}, {3, 1, "b", "labels"}, {1, 4, "labels", "labels"}, {2, 4, "a", "labels"}, {4, 2, "labels", "a"}, {3, 3, "b", "b"}} {
		if names, err := Renamed(path, c.from, c.to); err != nil || names[c.name] != c.want || names["images"] != "images" {
			t.Errorf("%+v: %v, %v", c, names, err)
		}
	}
	corrupt := filepath.Join(path, filepath.FromSlash(layout.GenerationName(3)))
	text, err := os.ReadFile(corrupt)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"{", string(text)} {
		if err := errors.Join(os.Chmod(corrupt, 0o666), os.WriteFile(corrupt, []byte(content), 0o666)); err != nil {
			t.Fatal(err)
		}
		names, err := Renamed(path, 2, 4)
		if err != nil || (names == nil) != (content == "{") {
			t.Errorf("of a generation that is %.9q: %v, %v", content, names, err)
		}
	}
	if _, err := edit.Prune(path, edit.PruneOptions{Keep: []int{2}}); err != nil {
		t.Fatal(err)
	}
	if names, err := Renamed(path, 2, 4); err != nil || names != nil {
		t.Errorf("%v, %v", names, err)
	}
}
