//go:build linux

package edit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// Of two writers at once, the slower one may put its root in place of that of a later generation: readers take that for
// what it is, and a root that no generation has for a corrupt one.
func TestRootOfAnotherGeneration(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds")
	makeIn(t, containers[1], ds, pages, labels)
	root := filepath.Join(ds, "zarr.json")
	if _, err := At(ds).AddColumn(emb, valuesOf(emb, 0), Options{}); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(root)
	require.NoError(t, err)
	if _, err := At(ds).SetColumn(emb, valuesOf(emb, 1), Options{}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, os.WriteFile(root, old, 0o666))
	if r, corrupt := datasettest.Verify(t, ds); len(corrupt) > 0 || !r.Identity {
		t.Error(corrupt)
	}
	require.NoError(t, os.WriteFile(root, append(old, ' '), 0o666))
	if _, err := store.Open(ds, store.OpenOptions{}); err == nil {
		t.Error("a corrupt root was not found")
	}
}
