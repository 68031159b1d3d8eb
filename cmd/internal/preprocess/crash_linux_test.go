package preprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/preprocess/part"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
)

// A build that ends at any of its steps, by a kill or a power cut, goes on and ends with the
// bytes of one that was not interrupted, and with nothing else.
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
	rows := raggedRows(t, 4)
	for name, w := range map[string]child{
		"flat":    {Source: source, Dest: "ds", Split: "train=0.6,val=0.4", Dedup: true},
		"hdf5":    {Source: source, Dest: "ds.h5"},
		"gzip":    {Source: source, Dest: "ds.h5", Compress: Compress{On: true}},
		"zarr":    {Source: source, Dest: "ds.zarr", Split: "train=0.6,val=0.4"},
		"view":    {Source: source, Dest: "ds", View: true},
		"shuffle": {Source: rows, Dest: "ds", Raw: true, Shuffle: Seed{true, 7}},
		"part":    {Source: source, Dest: "ds", World: part.Rank{Index: 0, Size: 2}},
		"merge":   {Source: source, Dest: "ds", Merge: true},
		"ordered": {Source: rows, Dest: "ds", Raw: true, Shuffle: Seed{true, 7}, Merge: true},
	} {
		t.Run(name, func(t *testing.T) {
			w.Workers, w.Checkpoint = 1, 1
			testCrashes(t, w)
		})
	}
}

func testCrashes(t *testing.T, w child) {
	link := filepath.Join(crash.MemoryDir(t), "link") // so that the work is the same in every folder
	at := func(folder string) child {
		if err := errors.Join(os.RemoveAll(link), os.Symlink(folder, link)); err != nil {
			t.Fatal(err)
		}
		w := w
		w.Dest = filepath.Join(link, w.Dest)
		return w
	}
	dir := crash.MemoryDir(t)
	if w.Merge {
		for rank := range 2 {
			one := at(dir)
			one.Merge, one.World = false, part.Rank{Index: rank, Size: 2}
			if err := one.do(&silent{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want map[string]string
	trial := crash.Trial{
		Folder: dir, Scratch: crash.MemoryDir(t), Done: func() { want = everything(t, dir) },
		Command: func(folder string) (env, args []string) {
			text, err := json.Marshal(at(folder))
			if err != nil {
				t.Fatal(err)
			}
			return []string{childKey + "=" + string(text)}, nil
		},
		GoOn: func(_ crash.State, folder string) error {
			if err := at(folder).do(&silent{}); err != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	return all
}
