package hdf5

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/seal"
)

func checkSeal(data []byte) (int64, error) {
	return seal.Check(bytes.NewReader(data), int64(len(data)))
}

// Every flipped bit of a file is in the rows of a column, whose blocks have checksums, or the
// seal finds it: also in padding, in names that nobody reads, and in what marks the file as
// one with a manifest.
func TestSealFindsEveryFlip(t *testing.T) { eachContainer(t, testSealFindsEveryFlip) }

func testSealFindsEveryFlip(t *testing.T) {
	dir := crash.MemoryDir(t)
	packed := filepath.Join(dir, "packed.h5")
	c := compressions["shuffle"]
	buildPacked(t, packed, 0, 40, Options{Compress: &c})
	for name, path := range map[string]string{"mapped": buildFile(t, imageSchema(12, 12), 40, 40, store.Info{}), "packed": packed} {
		good := read(t, path)
		covered, err := checkSeal(good)
		if err != nil || covered < 4000 || covered >= int64(len(good)) {
			t.Fatalf("%s: %d of %d bytes sealed, %v", name, covered, len(good), err)
		}
		missed := int64(0)
		step := max(1, len(good)/1000)
		for at := 0; at < len(good); at += step {
			good[at] ^= 1 << (at % 8)
			if _, err := checkSeal(good); err == nil {
				missed += int64(step)
			}
			good[at] ^= 1 << (at % 8)
		}
		if rows := int64(len(good)) - covered - 16; missed < rows*9/10 || missed > rows*11/10 {
			t.Errorf("%s: flips in about %d bytes pass, want those in the %d of rows alone", name, missed, rows)
		}
		if _, err := checkSeal(good[:len(good)-16]); !errors.Is(err, seal.ErrNone) {
			t.Errorf("%s: without its seal: %v", name, err)
		}
		good[600] ^= 4
		if _, err := checkSeal(good); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: a flip: %v", name, err)
		}
	}
}

// A file that the HDF5 library has changed has no seal, or one that does not fit.
func TestSealAfterH5py(t *testing.T) {
	h5test.Python(t)
	path := buildFile(t, imageSchema(12, 12), 40, 40, store.Info{})
	require.NoError(t, os.Chmod(path, 0o666))
	h5test.Run(t, "-c", "import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as f: f['images'].attrs['x'] = 3", path)
	if _, err := checkSeal(read(t, path)); !errors.Is(err, seal.ErrNone) && !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}
