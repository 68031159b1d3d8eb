package mirror

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
)

// A file of another program has no checksums: those of its bytes as they arrived are kept.
func TestPoisonOfForeignFileIsFound(t *testing.T) {
	path := h5test.File(t, "    f['images'] = np.random.default_rng(1).integers(0, 255, (600, 70, 70), dtype=np.uint8)\n    f['labels'] = np.arange(600)\n")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	local, err := mmapds.Open(path)
	require.NoError(t, err)
	defer local.Close()
	b := new(membucket.Memory)
	b.Put("x.h5", data)
	opts := loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}}
	want := epoch(t, local, opts, 0)
	cache := filepath.Join(t.TempDir(), "cache")
	d := open(t, b, "x.h5", Options{CacheDir: cache})
	if !bytes.Equal(epoch(t, d, opts, 0), want) {
		t.Error("other bytes than from the local file")
	}
	d.Close()
	poison(t, filepath.Join(d.Dir(), hdf5Name), len(data)/2)
	again := open(t, b, "x.h5", Options{CacheDir: cache})
	if !bytes.Equal(epoch(t, again, opts, 0), want) {
		t.Error("a poisoned mirror gave its poison")
	}
	if st := again.Stats(); st.Poisoned != 1 {
		t.Errorf("one block was poisoned: %+v", st)
	}
}

// poison changes a byte of a file.
func poison(t *testing.T, path string, at int) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text[at] ^= 4
	require.NoError(t, os.WriteFile(path, text, 0o600))
}
