package preprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/crash"
)

// A build that ends at any of its steps, by a kill or a power cut, goes on and ends with the
// bytes of one that was not interrupted.
func TestCrashes(t *testing.T) {
	source := t.TempDir()
	for i := range 5 {
		name := fmt.Sprintf("%s/%d.png", []string{"cat", "dog"}[i%2], i)
		data := picture(t, name, 26, 26, i%4) // one comes twice
		if i == 1 {
			data = data[:60]
		}
		put(t, source, name, data)
	}
	for name, w := range map[string]child{
		"flat":  {Dest: "ds", Split: "train=0.6,val=0.4", Dedup: true},
		"hdf5":  {Dest: "ds.h5"},
		"gzip":  {Dest: "ds.h5", Compress: Compress{On: true}},
		"part":  {Dest: "ds", World: World{Rank: 0, Size: 2}},
		"merge": {Dest: "ds", Merge: true},
	} {
		t.Run(name, func(t *testing.T) {
			if filepath.Ext(w.Dest) == ".h5" && !haveHDF5() {
				t.Skip("this build writes no HDF5")
			}
			w.Source, w.Workers, w.Checkpoint = source, 1, 1
			testCrashes(t, w)
		})
	}
}

func testCrashes(t *testing.T, w child) {
	link := filepath.Join(memoryDir(t), "link") // so that the work is the same in every folder
	at := func(folder string) child {
		if err := errors.Join(os.RemoveAll(link), os.Symlink(folder, link)); err != nil {
			t.Fatal(err)
		}
		w := w
		w.Dest = filepath.Join(link, w.Dest)
		return w
	}
	dir := memoryDir(t)
	if w.Merge {
		for rank := range 2 {
			part := at(dir)
			part.Merge, part.World = false, World{Rank: rank, Size: 2}
			if err := part.do(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want map[string]string
	trial := crash.Trial{
		Folder: dir, Scratch: memoryDir(t), Done: func() { want = visible(t, dir) },
		Command: func(folder string) (env, args []string) {
			text, err := json.Marshal(at(folder))
			if err != nil {
				t.Fatal(err)
			}
			return []string{childKey + "=" + string(text)}, nil
		},
		GoOn: func(s crash.State, folder string) error {
			if err := at(folder).do(); err != nil {
				return err
			}
			got := visible(t, folder)
			for name := range want {
				if got[name] != want[name] && (!s.Cut || !strings.HasSuffix(name, ".skipped.jsonl")) { // which is a report, and not synced
					return fmt.Errorf("%s: other bytes than without", name)
				}
			}
			if len(got) != len(want) {
				return fmt.Errorf("%d files, want %d", len(got), len(want))
			}
			return nil
		},
	}
	trial.Run(t)
}

// visible reads all files in a folder but hidden ones, and those in hidden folders.
func visible(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := files(t, folder)
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, ".") || strings.Contains(name, "/.") })
	return all
}

// memoryDir is a folder in memory, where there is one.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "penstock")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
