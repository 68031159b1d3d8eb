package hdf5

import (
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

var races = flag.Int("races", 20, "builds in a folder where another user swaps what has names")

// If others may rename everything, links come and go under the names of a running build. Whatever happens to
// the build, files outside stay as they are: with records that are written in place, and with those that are
// collected first.
func TestRacesForTheStage(t *testing.T) { eachContainer(t, testRacesForTheStage) }

func testRacesForTheStage(t *testing.T) {
	schema := imageSchema(8, 8)
	for name, opts := range map[string]Options{
		"in place":  {Records: 4},
		"shrinking": {Records: 9},
		"collected": {},
		"packed":    {Compress: &Compression{Level: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, target := crash.MemoryDir(t), t.TempDir()
			for _, name := range []string{"thesis.tex", "data.h5", write.JournalName, layout.ManifestName, "images-00000.npy"} {
				require.NoError(t, os.WriteFile(filepath.Join(target, name), []byte("the only copy of "+name), 0o644))
			}
			want := foldertest.Files(t, target)
			dest := filepath.Join(dir, "x.h5")
			swaps, stop := foldertest.SwapForLink(filepath.Join(dir, ".x.h5.building"), target)
			begun, built, refused := 0, 0, 0
			for i := 0; (begun < *races || swaps.Load() == 0) && i < 100**races; i++ {
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
			stop()
			if got := foldertest.Files(t, target); !maps.Equal(got, want) {
				t.Errorf("files outside were changed: %d, were %d", len(got), len(want))
			}
			if swaps.Load() == 0 {
				t.Error("no race was run")
			}
			t.Logf("%d builds begun, %d swaps; %d datasets built, %d refused or failed", begun, swaps.Load(), built, refused)
		})
	}
}

func raceBuild(w store.Writer, schema store.Schema) error {
	r := store.NewRecord(schema)
	var err error
	for i := 0; i < 4 && err == nil; i++ {
		runtime.Gosched() // with one CPU, the other user runs here
		fill(schema, r, i)
		err = w.Append(r)
	}
	if err == nil {
		_, err = w.Commit(store.Info{})
	}
	return errors.Join(err, w.Close())
}
