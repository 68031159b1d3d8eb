package mirror

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Records that are not next to each other share pages with what lies between them: all of these
// go when the records do, so that the disk is not full of what nobody can take out.
func TestEvictionLeavesNoPages(t *testing.T) {
	b, local := pair(t, 150)
	d := open(t, b, "ds", Options{CacheBytes: 800 << 10}) // less than the dataset has, more than is fetched
	for i := 0; i < local.Len(); i += 2 {
		require.NoError(t, d.Gather(t.Context(), "images", []int{i}, make([]byte, 4900)))
	}
	image := filepath.Join(d.Dir(), "images-00000.npy")
	before, page := diskUse(t, image), int64(os.Getpagesize())
	if freed := d.cache.segments.evict(1 << 40); freed < before-4*page || d.cache.counts.held.Load() > 0 {
		t.Errorf("%d bytes were freed of %d; %d blocks were held in memory", freed, before, d.cache.counts.held.Load())
	}
	if after := diskUse(t, image); before < 75*4900 || after > 4*page {
		t.Errorf("%d bytes on disk, %d after all was taken out", before, after)
	}
}

func diskUse(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return diskBytes(info)
}
