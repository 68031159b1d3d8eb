package mirror

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/webtest"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/web"
)

// Training from a web server and from the Hub, despite resets, slow bodies, 429 and 503, has the batches of the local dataset, of a
// flat folder and of an HDF5 file.
func TestTrainFromTheWeb(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	root := filepath.Dir(build(t, 600))
	packed, err := os.ReadFile("../../internal/hdf5/chunk/testdata/small-packed.h5")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "p.h5"), packed, 0o600))
	var faults atomic.Int64
	files := httptest.NewServer(webtest.Faulty(webtest.Files(os.DirFS(root)), &faults))
	defer files.Close()
	hub := httptest.NewServer(webtest.Faulty(&webtest.Hub{Dataset: "lab/ds", Branch: "main", Commit: commit, Files: os.DirFS(root), CDN: files.URL}, &faults))
	defer hub.Close()
	t.Setenv("HF_ENDPOINT", hub.URL)
	for _, base := range []string{files.URL, "hf://datasets/lab/ds@main"} {
		for _, name := range []string{"ds", "p.h5"} {
			local, err := mmapds.Open(filepath.Join(root, name))
			require.NoError(t, err)
			defer local.Close()
			u, err := remote.ParseURL(base + "/" + name)
			require.NoError(t, err)
			b, err := web.Open(u)
			require.NoError(t, err)
			before := faults.Load()
			d := open(t, b, u.Key, Options{Policy: remote.Policy{Backoff: time.Millisecond}})
			opts := loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{}, Seed: 3, Workers: 2}
			if want, got := epoch(t, local, opts, 0), epoch(t, d, opts, 0); !bytes.Equal(want, got) || d.ID() != local.ID() {
				t.Errorf("%s: other bytes than from the local dataset: %d and %d; id %s and %s", u, len(got), len(want), d.ID(), local.ID())
			}
			if faults.Load() == before || !d.Complete() {
				t.Errorf("%s: %d faults, %+v", u, faults.Load()-before, d.Stats())
			}
			require.NoError(t, d.Close())
		}
	}
}
