package preprocess

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/raw"
)

// A dataset of the cache that is corrupt is made again, also one of several generations.
func TestCorruptDatasetsAreMadeAgain(t *testing.T) {
	largest := func(t *testing.T, path string) (name string) {
		files, err := filepath.Glob(filepath.Join(path, "*.npy"))
		size := int64(-1)
		for _, f := range files {
			if info, ofFile := os.Stat(f); ofFile == nil && info.Size() > size {
				name, size = f, info.Size()
			}
		}
		if err != nil || name == "" {
			t.Fatal("no files", err)
		}
		return name
	}
	manifest := func(path string) string { return filepath.Join(path, "manifest.json") }
	for name, corrupt := range map[string]func(t *testing.T, path string) error{
		"shard deleted":  func(t *testing.T, path string) error { return os.Remove(largest(t, path)) },
		"shard cut":      func(t *testing.T, path string) error { return os.Truncate(largest(t, path), 200) },
		"manifest gone":  func(_ *testing.T, path string) error { return os.Remove(manifest(path)) }, // as by rm -r of a cache in use
		"manifest cut":   func(_ *testing.T, path string) error { return os.Truncate(manifest(path), 100) },
		"manifest empty": func(_ *testing.T, path string) error { return os.Truncate(manifest(path), 0) },
		"an empty folder": func(_ *testing.T, path string) error {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		},
		"a file in its place": func(_ *testing.T, path string) error {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newPhotoHistory(t, 5, false)
			h.make()
			h.put("cat/0.png")
			h.check(h.make())
			entries, err := rawcache.List(h.cache)
			if err != nil || len(entries) != 1 {
				t.Fatal(entries, err)
			}
			require.NoError(t, corrupt(t, entries[0].Path))
			var warned []string
			src, err := raw.Open(t.Context(), h.root, raw.Options{})
			require.NoError(t, err)
			defer src.Close()
			e, err := rawcache.FindIntact(t.Context(), h.cache, src, func(text string) { warned = append(warned, text) })
			if err != nil || e.Ready || len(warned) != 1 {
				t.Fatalf("%+v, %v, %q", e, err, warned)
			}
			c := cacheFlags{source: h.root, dir: h.cache, workers: 2}
			s, err := c.make(t.Context(), &rawtest.Silent{})
			require.NoError(t, err)
			h.check(s)
		})
	}
}
