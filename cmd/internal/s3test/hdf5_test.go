package s3test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
)

// A compressed HDF5 file of h5py's in a real server gives what it gives locally; one that is
// replaced while it is read is an error.
func TestChunkedHDF5(t *testing.T) {
	s := Start(t)
	path := h5test.File(t, `    a = np.random.default_rng(3).integers(0, 200, (600, 60, 60), dtype=np.uint8)
    f.create_dataset("images", data=a, chunks=(4, 60, 60), maxshape=(None, 60, 60), compression="gzip", shuffle=True)
    f.create_dataset("labels", data=np.arange(600), chunks=(100,), fletcher32=True)
`)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	url := s.URL(s.Address, "x.h5")
	put(t, url, text)
	local, err := mmapds.Open(path)
	require.NoError(t, err)
	defer local.Close()
	d := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	opts := loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Seed: 1}
	want, n := digest(t, local, opts, 0)
	if got, m := digest(t, d, opts, 0); got != want || n != m || !d.Complete() {
		t.Errorf("other bytes than from the local file (%d and %d), complete %v", m, n, d.Complete())
	}
	other := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	text[len(text)/2] ^= 1
	put(t, url, text)
	if err := other.Fill(t.Context()); !errors.Is(err, remote.ErrChanged) {
		t.Errorf("the object was replaced: %v", err)
	}
}

// put writes an object.
func put(t *testing.T, url string, data []byte) {
	t.Helper()
	b, u, err := cloud.Open(t.Context(), url)
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, requests.NewClient(b, remote.Policy{}).WriteAll(t.Context(), u.Key, data, remote.WriteOptions{}))
}
