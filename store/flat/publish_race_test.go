//go:build unix

package flat

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// Builders of one destination exclude each other from the first moment to the last: none takes over a stage
// that is about to be published. So each one publishes a whole dataset or is refused with ErrBusy.
func TestBuildersExcludeEachOther(t *testing.T) {
	const builds = 400
	dest := filepath.Join(crash.MemoryDir(t), "ds")
	var left, built atomic.Int64
	left.Store(builds)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				w, err := Create(dest, tokenSchema(), Options{ShardBytes: 1, Overwrite: true, Journal: &store.Journal{}})
				if err == nil {
					err = raceBuild(w, 1)
				}
				switch {
				case err == nil:
					built.Add(1)
				case !errors.Is(err, store.ErrBusy):
					t.Errorf("a build that was begun: %v", err)
				}
			}
		})
	}
	wg.Wait()
	d, err := store.OpenFlat(dest)
	require.NoError(t, err)
	if d.Records != 5 || built.Load() == 0 {
		t.Errorf("%d records, %d builds", d.Records, built.Load())
	}
}
