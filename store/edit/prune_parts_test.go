package edit

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Prune removes parts of columns that ranks have written long ago and that were not merged, and no others.
func TestPruneRemovesOldParts(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, ds, false, pages, labels)
	var folders []string
	for rank := range 2 {
		p := Part{rank, 2}
		first, end := p.Range(records)
		if err := WritePart(ds, emb, valuesIn(false, emb, 1, end-first), p, Options{}); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, partPath(ds, "emb", p))
	}
	old := time.Now().Add(-8 * 24 * time.Hour)
	other := filepath.Join(filepath.Dir(ds), ".ds2.emb.part-00000-of-00002") // of another dataset
	if err := os.CopyFS(other, os.DirFS(folders[0])); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{folders[0], other} {
		if err := os.Chtimes(filepath.Join(folder, "manifest.json"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	for _, opts := range []PruneOptions{{DryRun: true}, {}} {
		p, err := At(ds).Prune(opts)
		if err != nil || p.Files != 3 || p.Bytes == 0 {
			t.Fatalf("%+v, %v", p, err)
		}
		_, err = os.Stat(folders[0])
		if gone := err != nil; gone == opts.DryRun {
			t.Errorf("dry run %v: gone %v", opts.DryRun, gone)
		}
	}
	for _, folder := range []string{folders[1], other} {
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
	}
}
