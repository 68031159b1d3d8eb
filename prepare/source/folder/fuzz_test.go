package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/prepare/source"
)

// Whatever files in a folder are called, each sample is one of them, and all that were promised come.
func FuzzListing(f *testing.F) {
	for _, names := range []string{
		"cat/a.png\ndog/b.png", "train/cat/a.png\nval/cat/b.png\ntest/cat/c.png", "a.png\nb.jpg", "Train/x/a.png\ntrain/x/b.png",
		"cat/.a.png\n.hidden/a.png\n..a/b.png", "train/a.png\ntrain/cat/b.png\nother/c.png", "cat/\x1b[2J.png\ncat/\xff.png\n-x/--y.png",
		"a/b/c/d.png\na/b.csv\nlabels.csv", "val/a\ntrain/a", "x/ .png\n /x.png\n'$(touch X)'/a.png",
	} {
		f.Add(names)
	}
	f.Fuzz(func(t *testing.T, names string) {
		root := t.TempDir()
		made := make(map[string]bool)
		for _, name := range strings.SplitN(names, "\n", 20) {
			if !filepath.IsLocal(name) || len(name) > 1000 {
				continue
			}
			path := filepath.Join(root, name)
			if os.MkdirAll(filepath.Dir(path), 0o777) == nil && os.WriteFile(path, []byte("PIXELS"), 0o666) == nil {
				made[path] = true
			}
		}
		s, err := open(t, root)
		if err != nil {
			return
		}
		defer s.Close()
		info, n, v := s.Info(), int64(0), source.NewValues(2)
		for sample, err := range s.Samples() {
			if err != nil {
				t.Fatalf("%q: %v", names, err)
			}
			n++
			if !made[filepath.Join(root, filepath.FromSlash(sample.Name))] {
				t.Fatalf("%q: the sample %q is none of the files", names, sample.Name)
			}
			if sample.Data.Read(v) == nil && string(v.Get(0)) != "PIXELS" {
				t.Fatalf("%q: %q has %q", names, sample.Name, v.Get(0))
			}
		}
		if info.Count >= 0 && n != info.Count {
			t.Fatalf("%q: %d samples, but %d were promised", names, n, info.Count)
		}
	})
}
