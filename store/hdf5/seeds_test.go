package hdf5

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// seeds is where to write the compressed files that the tests of other packages corrupt:
//
//	go test ./store/hdf5 -run TestSeeds -seeds ../../internal/hdf5/chunk/testdata
var seeds = flag.String("seeds", "", "folder to write small compressed files into")

// Small compressed files, with several chunks of each array, can be made.
func TestSeeds(t *testing.T) { eachContainer(t, testSeeds) }

func testSeeds(t *testing.T) {
	dir := *seeds
	if dir == "" {
		dir = t.TempDir()
	}
	for name, c := range map[string]Compression{
		"small-packed.h5":   {Level: 6, Shuffle: ShuffleOff, ChunkRecords: 4},
		"small-shuffled.h5": {Level: 6, Shuffle: ShuffleOn, ChunkRecords: 3},
	} {
		path := filepath.Join(dir, name)
		buildPacked(t, path, 0, 10, Options{Compress: &c, Splits: trainVal, Overwrite: true})
		require.NoError(t, os.Chmod(path, 0o644))
		d, err := store.Open(path, store.OpenOptions{})
		require.NoError(t, err)
		if info, err := os.Stat(path); err != nil || info.Size() > 80<<10 || len(d.Manifest.Storage) < 5 {
			t.Errorf("%s: %v, storage %v, error %v", name, info.Size(), d.Manifest.Storage, err)
		}
	}
}
