package rawcache

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/store"
)

// The file of places is read as it was written, and not at all where it was cut or changed.
func TestPlacesOfAState(t *testing.T) {
	s := &state{3, []raw.Key{{1}, {2, 3}}, []int64{7, 0}}
	text := s.encode()
	got, err := decodeState(text)
	if err != nil || got.generation != 3 || !slices.Equal(got.keys, s.keys) || !slices.Equal(got.places, s.places) {
		t.Fatalf("%+v, %v", got, err)
	}
	for n := range text {
		flipped := slices.Clone(text)
		flipped[n] ^= 4
		for _, bad := range [][]byte{text[:n], flipped} {
			if _, err := decodeState(bad); !errors.Is(err, store.ErrCorrupt) {
				t.Fatalf("byte %d: %v", n, err)
			}
		}
	}
}

// The state that the dataset was built from is kept, and the newest.
func TestForget(t *testing.T) {
	e := entryOf(t, t.TempDir(), rawtest.Folder(t, 4))
	first := e.print.Digest
	require.NoError(t, e.shelf().putFirst(e.print))
	for _, digest := range []string{"a", "b", "c"} {
		require.NoError(t, e.shelf().put(digest, &state{generation: 2}))
	}
	require.NoError(t, e.shelf().forget("b"))
	got := e.shelf().digests()
	slices.Sort(got)
	if want := []string{first, "b"}; !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("states %q", got)
	}
	if files, err := os.ReadDir(e.Path + states); err != nil || len(files) != 4 {
		t.Errorf("%v, %v", files, err)
	}
}

// One process at a time changes a dataset.
func TestChangeIsExclusive(t *testing.T) {
	dir, path := t.TempDir(), rawtest.Folder(t, 4)
	before := made(t, dir, path)
	held, err := before.change()
	require.NoError(t, err)
	rawtest.Put(t, path, "cat/new.png", rawtest.Picture(t, ".png", 9, 9, 1))
	src, err := raw.Open(t.Context(), path, raw.Options{})
	require.NoError(t, err)
	defer src.Close()
	after, err := Find(t.Context(), dir, src)
	if err != nil || after.Ready {
		t.Fatal(after.Ready, err)
	}
	if _, err := after.Renew(t.Context(), src, 1, 0, nil); !errors.Is(err, errBusy) {
		t.Errorf("error %v", err)
	}
	if removed, err := before.evict(); removed || err != nil {
		t.Errorf("removed while it is changed: %v, %v", removed, err)
	}
	require.NoError(t, held.Close())
	if renewed, err := after.Renew(t.Context(), src, 1, 0, nil); renewed || err != nil { // built from animals
		t.Errorf("renewed %v, %v", renewed, err)
	}
}
