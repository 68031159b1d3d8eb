package hdf5

import (
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/build"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/store"
)

var races = flag.Int("races", 50, "builds in a folder where another user swaps what has names")

// Where others may rename everything, links come and go under the names of a build while it is at work.
// Whatever becomes of the build, files outside stay as they are: with records that are written in place, and
// with those that are collected first.
func TestRacesForTheStage(t *testing.T) {
	schema := imageSchema(8, 8)
	for name, opts := range map[string]Options{
		"in place":  {Records: 4},
		"shrinking": {Records: 9},
		"collected": {},
		"packed":    {Compress: &Compression{Level: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, target := crash.MemoryDir(t), t.TempDir()
			for _, name := range []string{"thesis.tex", "data.h5", build.JournalName, store.ManifestName, "images-00000.npy"} {
				if err := os.WriteFile(filepath.Join(target, name), []byte("the only copy of "+name), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := foldertest.Files(t, target)
			dest := filepath.Join(dir, "x.h5")
			swaps, stop := swapStage(dir, target)
			begun, built, refused := 0, 0, 0
			for i := 0; begun < *races && i < 100**races; i++ {
				o := opts
				o.Overwrite = true
				w, err := Create(dest, schema, o)
				if err == nil {
					begun++
					err = raceBuild(w, schema)
				}
				if err == nil {
					built++
				} else {
					refused++
				}
				for _, name := range []string{dest, filepath.Join(dir, ".x.h5.building.done")} {
					if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
						_ = os.Remove(name) // a link that was swapped in while it was renamed
					}
				}
			}
			close(stop)
			n := <-swaps
			if got := foldertest.Files(t, target); !maps.Equal(got, want) {
				t.Errorf("files outside were changed: %d, were %d", len(got), len(want))
			}
			if n == 0 {
				t.Error("no race was run")
			}
			t.Logf("%d builds begun, %d swaps; %d datasets built, %d refused or failed", begun, n, built, refused)
		})
	}
}

// swapStage swaps the stage of dir/x.h5 for a link to target, again and again, until stop is closed; then it sends
// how often.
func swapStage(dir, target string) (swaps <-chan int, stop chan<- struct{}) {
	stage, aside := filepath.Join(dir, ".x.h5.building"), filepath.Join(dir, "aside")
	count, end := make(chan int, 1), make(chan struct{})
	go func() {
		n := 0
		for {
			select {
			case <-end:
				count <- n
				return
			default:
			}
			if os.Rename(stage, aside) == nil {
				_ = os.Symlink(target, stage)
				time.Sleep(time.Duration(n%7) * 50 * time.Microsecond)
				_ = errors.Join(os.Remove(stage), os.Rename(aside, stage))
				n++
			}
			_ = os.RemoveAll(aside)
			time.Sleep(time.Duration(n%11) * 100 * time.Microsecond)
		}
	}()
	return count, end
}

func raceBuild(w store.Writer, schema store.Schema) error {
	r := store.NewRecord(schema)
	var err error
	for i := 0; i < 4 && err == nil; i++ {
		fill(schema, r, i)
		err = w.Append(r)
	}
	if err == nil {
		_, err = w.Commit(store.Info{})
	}
	return errors.Join(err, w.Close())
}
