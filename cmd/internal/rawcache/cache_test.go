package rawcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/prepare/raw"
)

// Entries of sources with any name are listed and removed whole.
func TestNamesOfSources(t *testing.T) {
	for _, name := range []string{".x", "...", "a" + about + ".b", about + about + ".b", "a" + about, "a.building"} {
		dir, path := t.TempDir(), filepath.Join(t.TempDir(), name)
		require.NoError(t, os.CopyFS(path+"_", os.DirFS(rawtest.Folder(t, 4))))
		require.NoError(t, os.Rename(path+"_", path))
		e := made(t, dir, path)
		list, err := List(dir)
		if err != nil || len(list) != 1 || list[0].Name != e.Name || !list[0].Ready {
			t.Errorf("%q: entry %q, list %+v, %v", name, e.Name, list, err)
			continue
		}
		require.NoError(t, list[0].Remove())
		folder, err := Folder(dir)
		require.NoError(t, err)
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%q: %v is left, %v", name, left, err)
		}
	}
}

// sourceOf opens a source until the test ends.
func sourceOf(t *testing.T, path string) *raw.Source {
	t.Helper()
	src, err := raw.Open(t.Context(), path, raw.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { src.Close() })
	return src
}

// entryOf returns the entry of a source in a cache.
func entryOf(t *testing.T, dir, path string) *Entry {
	t.Helper()
	e, err := Find(t.Context(), dir, sourceOf(t, path))
	require.NoError(t, err)
	return e
}

// makeDataset makes a dataset; of what does not matter here.
func makeDataset(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.CopyFS(path, os.DirFS(datasettest.Animals(t))))
}

// A dataset gets its name if the source is unchanged since it was built; then it is found, listed and removed.
func TestPublish(t *testing.T) {
	dir, path := t.TempDir(), rawtest.Folder(t, 4)
	e := entryOf(t, dir, path)
	if e.Ready || !strings.HasPrefix(e.Name, "photos-") {
		t.Fatalf("entry %+v", e)
	}
	makeDataset(t, e.Building())
	require.NoError(t, e.Publish(t.Context(), sourceOf(t, path)))
	if e = entryOf(t, dir, path); !e.Ready {
		t.Error("it is not found")
	}
	makeDataset(t, e.Building())
	if err := e.Publish(t.Context(), sourceOf(t, path)); err != nil { // as another process did before
		t.Error(err)
	}
	list, err := List(dir)
	if err != nil || len(list) != 1 || !list[0].Ready || list[0].Source != e.Source || list[0].Bytes < 1000 || list[0].Used.IsZero() {
		t.Fatalf("%+v, %v", list, err)
	}
	ds, _, held, err := e.Open(nil)
	if err == nil {
		err = errors.Join(ds.Close(), held.Close())
	}
	require.NoError(t, err)
	require.NoError(t, list[0].Remove())
	left, err := os.ReadDir(filepath.Dir(e.Path))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A dataset that was made while files changed is not published.
func TestPublishOfAChangedSource(t *testing.T) {
	dir, path := t.TempDir(), rawtest.Folder(t, 4)
	e := entryOf(t, dir, path)
	makeDataset(t, e.Building())
	rawtest.Put(t, path, "cat/new.png", rawtest.Picture(t, ".png", 9, 9, 1))
	if err := e.Publish(t.Context(), sourceOf(t, path)); err == nil || !strings.Contains(err.Error(), "files were changed") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(e.Path)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A folder of the cache that others can use, or a link in its place, is refused, and nothing is read or made there.
func TestFolderIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files are those of Unix")
	}
	dir := t.TempDir()
	folder, err := Folder(dir)
	require.NoError(t, err)
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	require.NoError(t, os.Chmod(folder, 0o777))
	if _, err := Folder(dir); err == nil || !strings.Contains(err.Error(), "others may use it") {
		t.Errorf("error %v", err)
	}
	elsewhere := t.TempDir()
	require.NoError(t, os.Remove(folder))
	require.NoError(t, os.Symlink(elsewhere, folder))
	if _, err := Folder(dir); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("error %v", err)
	}
}

// Programs print progress before their last words.
func TestProgram(t *testing.T) {
	t.Setenv("PENSTOCK_PREPROCESS", "/x/preprocess")
	if words, err := program(); err != nil || strings.Join(words, " ") != "/x/preprocess" {
		t.Errorf("%q, %v", words, err)
	}
}

// made makes the dataset of a source in a cache, as the command does.
func made(t *testing.T, dir, path string) *Entry {
	t.Helper()
	e := entryOf(t, dir, path)
	makeDataset(t, e.Building())
	require.NoError(t, e.Publish(t.Context(), sourceOf(t, path)))
	return entryOf(t, dir, path)
}

// there returns which entries are still there.
func there(entries ...*Entry) (out []bool) {
	for _, e := range entries {
		_, err := os.Stat(e.Path)
		out = append(out, err == nil)
	}
	return out
}

// Room is made by the dataset that was not used for longest, but for pinned ones and those in use.
func TestMakeRoom(t *testing.T) {
	dir := t.TempDir()
	pinned, inUse, old, recent := made(t, dir, rawtest.Folder(t, 4)), made(t, dir, rawtest.Folder(t, 6)), made(t, dir, rawtest.Folder(t, 8)), made(t, dir, rawtest.Folder(t, 10))
	for i, e := range []*Entry{pinned, inUse, old, recent} {
		at := time.Now().Add(time.Duration(i-100) * time.Hour)
		require.NoError(t, os.Chtimes(e.Path+about, at, at))
	}
	require.NoError(t, pinned.Pin())
	held, err := inUse.hold()
	require.NoError(t, err)
	list, err := List(dir)
	require.NoError(t, err)
	total := int64(0)
	for _, e := range list {
		total += e.Bytes
	}
	next := entryOf(t, dir, rawtest.Folder(t, 12))
	need := diskBytes(next.print, next.records, next.records)
	var said []string
	say := func(text string) { said = append(said, text) }
	if err := next.MakeRoom(total+need, say); err != nil || len(said) > 0 {
		t.Errorf("with room for all: %v, %q", err, said)
	}
	if err := next.MakeRoom(total, say); err != nil || !slices.Equal(there(pinned, inUse, old, recent), []bool{true, true, false, true}) {
		t.Errorf("%v, %q", err, said)
	}
	if err := next.MakeRoom(need, say); err == nil || !strings.Contains(err.Error(), "are in use or pinned; raise the cache size") {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(there(pinned, inUse, recent), []bool{true, true, false}) || len(said) != 2 {
		t.Errorf("%q", said)
	}
	if err := errors.Join(held.Close(), pinned.Unpin(), next.MakeRoom(need, say)); err != nil || !slices.Equal(there(pinned, inUse), []bool{false, false}) {
		t.Errorf("%v, %q", err, said)
	}
}

// The dataset of a source that changed replaces that of its earlier state.
func TestReplace(t *testing.T) {
	dir, path := t.TempDir(), rawtest.Folder(t, 4)
	before, other := made(t, dir, path), made(t, dir, rawtest.Folder(t, 6))
	rawtest.Put(t, path, "cat/new.png", rawtest.Picture(t, ".png", 9, 9, 1))
	after := made(t, dir, path)
	var said []string
	if err := after.Replace(func(text string) { said = append(said, text) }); err != nil || len(said) != 1 || !strings.Contains(said[0], path+" changed") {
		t.Errorf("%v, %q", err, said)
	}
	if !slices.Equal(there(before, other, after), []bool{false, true, true}) {
		t.Error(there(before, other, after))
	}
}

// Room is made for about as many bytes as the dataset then takes on disk.
func TestDiskBytes(t *testing.T) {
	dir, path := t.TempDir(), t.TempDir()
	picture := rawtest.Picture(t, ".png", 8, 8, 1)
	for i := range 300 {
		rawtest.Put(t, path, fmt.Sprintf("cat/%d of a long name, as some have.png", i), picture)
	}
	e := entryOf(t, dir, path)
	config := prepare.DefaultConfig()
	config.Images.Normalize = prepare.Normalize{Name: "none"}
	config.Images.KeepEncoded, config.Source, config.Dest = true, path, e.Building()
	if _, err := prepare.Run(t.Context(), config, &rawtest.Silent{}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, e.Publish(t.Context(), sourceOf(t, path)))
	list, err := List(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if has, want := list[0].Bytes, diskBytes(e.print, e.records, e.records); has > want || has < want-8192 {
		t.Errorf("it has %d bytes, and %d were expected", has, want)
	}
}

// A list makes no folder.
func TestListOfNoCache(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		list, err := List(dir)
		if err != nil || len(list) > 0 {
			t.Errorf("%+v, %v", list, err)
		}
		if files, err := os.ReadDir(dir); len(files) > 0 {
			t.Errorf("%s has %v, %v", dir, files, err)
		}
	}
}

// A source of many files is read at once, while they are compared with the cache, and its dataset from then on.
func TestManyFilesAreComparedLater(t *testing.T) {
	defer func(n int64) { manySamples = n }(manySamples)
	manySamples = 3
	dir, path := t.TempDir(), rawtest.Folder(t, 4)
	e := entryOf(t, dir, path)
	config := prepare.DefaultConfig()
	config.Source, config.Dest, config.Images.KeepEncoded = path, e.Building(), true
	if _, err := prepare.Run(t.Context(), config, &rawtest.Silent{}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, e.Publish(t.Context(), sourceOf(t, path)))
	src, warned := sourceOf(t, path), make(chan string, 1)
	o := Options{Dir: dir, Mode: Auto, Warn: func(text string) { warned <- text }}
	if _, err := Keep(t.Context(), src, o); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !src.InUse(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the dataset is not used")
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(e.Path, "manifest.json"), []byte("{"), 0o600))
	if err := os.Chmod(filepath.Dir(e.Path), 0o777); err != nil { // others may write there
		t.Fatal(err)
	}
	src = sourceOf(t, path)
	if _, err := Keep(t.Context(), src, o); err != nil {
		t.Fatal(err)
	}
	if text := <-warned; !strings.Contains(text, "is read as it is, as it could not be prepared") || src.InUse() {
		t.Errorf("warning %q", text)
	}
}
