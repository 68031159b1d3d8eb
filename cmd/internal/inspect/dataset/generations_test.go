package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
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
	return func() (*store.Manifest, error) { return edit.At(path).RenameColumn(from, to, edit.Options{}) }
}

func restore(path, generation string) func() (*store.Manifest, error) {
	return func() (*store.Manifest, error) { return edit.At(path).Restore(generation, edit.Options{}) }
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
	require.NoError(t, err)
	for _, content := range []string{"{", string(text)} {
		require.NoError(t, errors.Join(os.Chmod(corrupt, 0o666), os.WriteFile(corrupt, []byte(content), 0o666)))
		names, err := Renamed(path, 2, 4)
		if err != nil || (names == nil) != (content == "{") {
			t.Errorf("of a generation that is %.9q: %v, %v", content, names, err)
		}
	}
	if _, err := edit.At(path).Prune(edit.PruneOptions{Keep: []int{2}}); err != nil {
		t.Fatal(err)
	}
	if names, err := Renamed(path, 2, 4); err != nil || names != nil {
		t.Errorf("%v, %v", names, err)
	}
}
