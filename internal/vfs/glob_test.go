package vfs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Glob finds the paths that filepath.Glob finds, for any pattern.
func TestGlob(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a[b")
	for _, name := range []string{"x.json", "cat/1.json", "cat/a.jpg", "cat/deep/1.json", "dog/.1.json", "dog/[x].json", "x*y", "empty/"} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		if filepath.Base(path) != "empty" {
			require.NoError(t, os.WriteFile(path, nil, 0o666))
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	parts := []string{"*", "cat", "dog", "*.json", "1.json", "x.json", "deep", "?at", "[cd]*", "*_mask.*", "none", `x\*y`, "[", "", "..", "*g", "[[]x].json"}
	found := 0
	for range 1000 {
		pattern := filepath.Dir(root) + "/a[[]b"
		if rng.IntN(2) == 0 {
			pattern = filepath.Dir(root) + "/*"
		}
		for range 1 + rng.IntN(3) {
			pattern += "/" + parts[rng.IntN(len(parts))]
		}
		got, failed := Glob(pattern)
		want, err := filepath.Glob(pattern)
		if !slices.Equal(got, want) || fmt.Sprint(failed) != fmt.Sprint(err) {
			t.Errorf("%s: %q, %v; want %q, %v", pattern, got, failed, want, err)
		}
		found += len(want)
	}
	if found < 300 {
		t.Errorf("%d paths in all", found)
	}
}
