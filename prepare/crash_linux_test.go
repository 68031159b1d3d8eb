package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
)

// A build that ends at any of its steps, by a kill or a power cut, continues and ends with the
// bytes of one that was not interrupted, and with nothing else.
func TestCrashes(t *testing.T) {
	source := t.TempDir()
	for i := range 5 {
		name := fmt.Sprintf("%s/%d.png", []string{"cat", "dog"}[i%2], i)
		data := rawtest.Picture(t, name, 26, 26, i%4) // one comes twice
		if i == 1 {
			data = data[:60]
		}
		rawtest.Put(t, source, name, data)
	}
	rows := raggedRows(t, 4)
	more := t.TempDir()
	for i := range 4 {
		name := fmt.Sprintf("%s/new%d.png", []string{"cat", "dog"}[i%2], i)
		rawtest.Put(t, more, name, rawtest.Picture(t, name, 26, 26, i))
	}
	for name, w := range map[string]child{
		"flat":           {Source: source, Dest: "ds", Split: "train=0.6,val=0.4", Dedup: true},
		"hdf5":           {Source: source, Dest: "ds.h5"},
		"gzip":           {Source: source, Dest: "ds.h5", Compress: Compress{Method: Gzip}},
		"zarr":           {Source: source, Dest: "ds.zarr", Split: "train=0.6,val=0.4"},
		"view":           {Source: source, Dest: "ds", View: true},
		"shuffle":        {Source: rows, Dest: "ds", Raw: true, Shuffle: Seed{true, 7}},
		"part":           {Source: source, Dest: "ds", World: part.Rank{Index: 0, Size: 2}},
		"merge":          {Source: source, Dest: "ds", Merge: true},
		"ordered":        {Source: rows, Dest: "ds", Raw: true, Shuffle: Seed{true, 7}, Merge: true},
		"append to flat": {Source: more, Dest: "ds", Append: true},
		"append to hdf5": {Source: more, Dest: "ds.h5", Append: true},
		"append to gzip": {Source: more, Dest: "ds.h5", Append: true, Compress: Compress{Method: Gzip}},
		"append to zarr": {Source: more, Dest: "ds.zarr", Append: true},
	} {
		t.Run(name, func(t *testing.T) {
			w.Workers, w.Checkpoint = 1, 1
			testCrashes(t, w, source)
		})
	}
}

// testCrashes crashes a build, of an append that of more records to those of first.
func testCrashes(t *testing.T, w child, first string) {
	link := filepath.Join(crash.MemoryDir(t), "link") // so that the work is the same in every folder
	at := func(folder string) child {
		require.NoError(t, errors.Join(os.RemoveAll(link), os.Symlink(folder, link)))
		w := w
		w.Dest = filepath.Join(link, w.Dest)
		return w
	}
	dir := crash.MemoryDir(t)
	if w.Merge {
		for rank := range 2 {
			one := at(dir)
			one.Merge, one.World = false, part.Rank{Index: rank, Size: 2}
			require.NoError(t, one.do(&rawtest.Silent{}))
		}
	}
	if w.Append {
		one := at(dir)
		one.Source, one.Append = first, false
		require.NoError(t, one.do(&rawtest.Silent{}))
		w.Compress = Compress{} // which is that of the dataset
	}
	var want map[string]string
	trial := crash.Trial{
		Folder: dir, Scratch: crash.MemoryDir(t), Done: func() { want = everything(t, dir) },
		Command: func(folder string) (env, args []string) {
			return at(folder).env(), nil
		},
		GoOn: func(_ crash.State, folder string) error {
			if err := at(folder).do(&rawtest.Silent{}); err != nil {
				return err
			}
			got := everything(t, folder)
			for name := range want {
				if got[name] != want[name] {
					return fmt.Errorf("%s: other bytes than without", name)
				}
				delete(got, name)
			}
			if len(got) > 0 {
				return fmt.Errorf("left: %v", slices.Sorted(maps.Keys(got)))
			}
			return nil
		},
	}
	trial.Run(t)
}

// A rank that waits at any of its steps, while another machine makes the same part and the merge makes the dataset, and
// continues then, changes nothing of the dataset. It succeeds, or its error has the name of its part.
func TestPausedRank(t *testing.T) {
	source, out := manyPictures(t, 40), t.TempDir()
	split := child{Source: source, Dest: filepath.Join(out, "split"), Workers: 1, Split: "train=0.8,val=0.2", Dedup: true}
	kept := child{Source: source, Dest: filepath.Join(out, "kept"), Workers: 1, Keep: true}
	split.run(t, 0)
	kept.run(t, 0)
	calls := make(map[bool]int) // of a rank, in a bucket and not
	for seed := range *schedules {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			one := split
			if seed/2%2 == 1 {
				one = kept
			}
			s := newSchedule(t, seed, one)
			bucket := s.work.Bucket != ""
			if calls[bucket] == 0 {
				calls[bucket] = testPausedRank(newSchedule(t, seed, one), one, 0)
			}
			at := 1 + s.random.IntN(calls[bucket])
			if seed/4%2 == 1 {
				at = max(1, calls[bucket]-s.random.IntN(60)) // while it publishes
			}
			testPausedRank(s, one, at)
		})
	}
}

// testPausedRank pauses a rank after some calls. It returns the number of calls.
func testPausedRank(s *schedule, one child, at int) int {
	rank := func(index int, machine string) child {
		w := s.work
		w.World, w.Machine, w.Spool = part.Rank{Index: index, Size: 2}, machine, filepath.Join(s.dir, "spool"+machine)
		return w
	}
	merged := false
	meanwhile := func() error {
		merged = true
		merge := s.work
		merge.Merge, merge.Spool = true, filepath.Join(s.dir, "spool")
		for _, w := range []child{rank(0, "B"), rank(1, "B"), merge} {
			if _, _, err := w.try(0); err != nil {
				return err
			}
		}
		return nil
	}
	calls, err := crash.Paused(at, meanwhile, rank(0, "A").env(), os.Args[0])
	if errors.Is(err, crash.ErrUntraceable) {
		s.t.Skip(err)
	}
	if err != nil && !namesPart(err, 0, 2) {
		s.t.Errorf("paused after %d calls, error %v", at, err)
	}
	if !merged {
		require.NoError(s.t, meanwhile())
	}
	if one.Keep {
		checkKept(s.t, s.made, one.Dest, 2)
	} else {
		checkSame(s.t, s.made, one.Dest)
	}
	return calls
}

// everything reads all files in a folder, and lists the folders in it.
func everything(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := foldertest.Files(t, folder)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			all[strings.TrimPrefix(path, folder)+"/"] = ""
		}
		return err
	})
	require.NoError(t, err)
	return all
}
