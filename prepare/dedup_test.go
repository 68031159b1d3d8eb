package prepare

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
)

// Appending leaves out samples that the dataset has, and samples that repeat in this run, for
// any number of workers, in both formats, and lists these samples.
func TestDedupAppend(t *testing.T) {
	for _, name := range []string{"ds", "ds.h5", "ds.zarr"} {
		var ids []string
		for _, workers := range []int{1, 4} {
			first := config(t, rawtest.Folder(t, 10))
			first.Dest = filepath.Join(filepath.Dir(first.Dest), name)
			mustRun(t, first)
			more := filepath.Join(t.TempDir(), "more")
			rawtest.Put(t, more, "ant/new.png", rawtest.Picture(t, ".png", 40, 30, 70))
			rawtest.Put(t, more, "ant/old.png", rawtest.Picture(t, ".png", 40, 30, 0)) // cat/a.png, without its name
			rawtest.Put(t, more, "dog/new-again.png", rawtest.Picture(t, ".png", 40, 30, 70))
			rawtest.Put(t, more, "dog/other.png", rawtest.Picture(t, ".png", 40, 30, 71))
			second := config(t, more)
			second.Dest, second.Append, second.Dedup, second.Workers = first.Dest, true, true, workers
			s := mustRun(t, second)
			if s.Records != 12 || s.Duplicates != 2 || len(s.Skipped) != 0 {
				t.Errorf("%s: %d records, %d duplicates, skipped %v", name, s.Records, s.Duplicates, s.Skipped)
			}
			list, err := os.ReadFile(first.Dest + ".skipped.jsonl")
			want := `{"sample":"ant/old.png","kind":"duplicate","reason":"its content is in the dataset already: record 0"}
{"sample":"dog/new-again.png","kind":"duplicate","reason":"an earlier sample has the same content: record 10"}
`
			if err != nil || string(list) != want {
				t.Errorf("%s: list %s (%v), want %s", name, list, err, want)
			}
			ids = append(ids, s.ID)
		}
		if ids[0] != ids[1] {
			t.Errorf("%s: other records with other numbers of workers: %q", name, ids)
		}
	}
}

// Rows without images are compared by all their values. A dataset built at once equals one that is appended to
// part by part.
func TestDedupAppendOfRows(t *testing.T) {
	dir := t.TempDir()
	rows := []string{"1,a,x\n2,b,y\n1,a,x\n", "2,b,y\n3,a,\n1,b,x\n3,a,\n"}
	for i, name := range []string{"first.csv", "second.csv"} {
		rawtest.Put(t, dir, name, []byte("n,label,text\n"+rows[i]))
	}
	rawtest.Put(t, dir, "both.csv", []byte("n,label,text\n"+rows[0]+rows[1]))
	whole, c := plain(t, filepath.Join(dir, "both.csv")), plain(t, filepath.Join(dir, "first.csv"))
	whole.Dedup, c.Dedup = true, true
	want := mustRun(t, whole)
	mustRun(t, c)
	c.Source, c.Append = filepath.Join(dir, "second.csv"), true
	got := mustRun(t, c)
	if got.Records != 4 || got.ID != want.ID || got.Duplicates != 2 {
		t.Errorf("%d records of id %s, %d duplicates; want 4 of %s", got.Records, got.ID, got.Duplicates, want.ID)
	}
}

// An append of nothing new leaves the dataset as it is.
func TestDedupAppendNothing(t *testing.T) {
	for _, name := range []string{"ds", "ds.h5", "ds.zarr"} {
		c := config(t, rawtest.Folder(t, 6))
		c.Dest = filepath.Join(filepath.Dir(c.Dest), name)
		first := mustRun(t, c)
		c.Append, c.Dedup = true, true
		s, err := Run(context.Background(), c, &rawtest.Silent{})
		if err != nil || s.Records != 6 || s.Duplicates != 6 || s.ID != first.ID {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if m, err := openManifest(c.Dest); err != nil || m.Records != 6 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
