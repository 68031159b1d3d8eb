package preprocess

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// recordsInCache returns how many records the one dataset of a cache has, those of earlier states included.
func recordsInCache(t *testing.T, dir string) int64 {
	t.Helper()
	entries, err := rawcache.List(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%+v, %v", entries, err)
	}
	m, err := store.ReadManifest(entries[0].Path)
	require.NoError(t, err)
	return m.Records
}

// prepared prepares a source, compares the records, and returns how many the dataset has.
func prepared(t *testing.T, h *photoHistory) int64 {
	t.Helper()
	h.check(h.make())
	return recordsInCache(t, h.cache)
}

// A file that replaces another one of its size and its time of modification is read again.
func TestReplacedFile(t *testing.T) {
	h := newPhotoHistory(t, 1, false)
	if n := prepared(t, h); n != 24 {
		t.Fatal(n)
	}
	if runtime.GOOS == "windows" {
		t.Skip("this system reports no times of change")
	}
	path := filepath.Join(h.root, "cat", "0.png")
	info, err := os.Stat(path)
	require.NoError(t, err)
	other := rawtest.Picture(t, path, 9, 9, 7)
	other = append(other, make([]byte, max(0, int(info.Size())-len(other)))...)[:info.Size()]
	require.NoError(t, errors.Join(os.WriteFile(path, other, 0o666), os.Chtimes(path, info.ModTime(), info.ModTime())))
	if n := prepared(t, h); n != 25 {
		t.Errorf("%d records after a file was replaced", n)
	}
}

// A folder that was renamed shares the dataset that was built before. If its manifest is cut, it is built again.
func TestRenamedSource(t *testing.T) {
	h := newPhotoHistory(t, 1, false)
	prepared(t, h)
	moved := h.root + "-moved"
	require.NoError(t, os.Rename(h.root, moved))
	h.root = moved
	if n := prepared(t, h); n != 24 {
		t.Errorf("%d records after the folder was renamed", n)
	}
	entries, err := rawcache.List(h.cache)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	manifest := filepath.Join(entries[0].Path, "manifest.json")
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(manifest, text[:len(text)/2], 0o600))
	if n := prepared(t, h); n != 24 {
		t.Errorf("%d records after the manifest was cut", n)
	}
}

// packed writes archives of pictures, ten each, in a form.
func packed(t *testing.T, folder, form string, number, seed int) {
	t.Helper()
	var b bytes.Buffer
	name := filepath.Join(folder, fmt.Sprintf("%03d.%s", number, form))
	type row struct {
		Image []byte `parquet:"image"`
		Label int64  `parquet:"label"`
	}
	var rows []row
	put := func(string, []byte) error { return nil }
	end := func() error { return parquet.Write(&b, rows) }
	switch form {
	case "tar":
		w := tar.NewWriter(&b)
		put = func(name string, data []byte) error {
			if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644}); err != nil {
				return err
			}
			_, err := w.Write(data)
			return err
		}
		end = w.Close
	case "zip":
		w := zip.NewWriter(&b)
		put = func(name string, data []byte) error {
			f, err := w.Create(name)
			if err == nil {
				_, err = f.Write(data)
			}
			return err
		}
		end = w.Close
	}
	for i := range 10 {
		picture := rawtest.Picture(t, ".jpg", 20+seed%3, 20, seed*10+i)
		rows = append(rows, row{picture, int64(i % 2)})
		require.NoError(t, errors.Join(put(fmt.Sprintf("%d.jpg", i), picture), put(fmt.Sprintf("%d.cls", i), fmt.Append(nil, i%2))))
	}
	require.NoError(t, end())
	rawtest.Put(t, folder, filepath.Base(name), b.Bytes())
}

// Of several archives, those that were changed or added are read again, and no other.
func TestStatesOfArchives(t *testing.T) {
	for _, form := range []string{"tar", "zip", "parquet"} {
		t.Run(form, func(t *testing.T) {
			h := &photoHistory{T: t, root: filepath.Join(t.TempDir(), "shards"), cache: t.TempDir()}
			for i := range 4 {
				packed(t, h.root, form, i, i)
			}
			if n := prepared(t, h); n != 40 {
				t.Fatal(n)
			}
			packed(t, h.root, form, 1, 17)
			if n := prepared(t, h); n != 50 {
				t.Errorf("%d records after one archive of four was changed", n)
			}
			packed(t, h.root, form, 4, 4)
			require.NoError(t, os.Remove(filepath.Join(h.root, "000."+form)))
			if n := prepared(t, h); n != 60 {
				t.Errorf("%d records after one was added, and one removed", n)
			}
			later := time.Now().Add(time.Hour)
			for i := 1; i < 5; i++ {
				require.NoError(t, os.Chtimes(filepath.Join(h.root, fmt.Sprintf("%03d.%s", i, form)), later, later))
			}
			if n := prepared(t, h); n != 40 {
				t.Errorf("%d records after all were changed: the dataset is made afresh", n)
			}
		})
	}
}
