package mmapds_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// Direct reads give the same bytes, aligned or not and at the end of the file, and leave the
// page cache as it was; where the file system refuses, the reads go through that.
func TestDirect(t *testing.T) {
	for _, size := range []int{784, 100_000, 8192} {
		path := bytesDataset(t, size, 64*size)
		ds := openCold(t, path, mmapds.WithRead(mmapds.ReadDirect))
		last := ds.Len() - 1
		for range 2 {
			checkGather(t, ds, []int{3, last, 3, 0, 50, 7, last}, size)
		}
		how, why, in := ds.DescribeReads("x")
		if strings.Contains(why, "O_DIRECT is not possible") {
			t.Logf("not shown here: %s", why)
			continue
		}
		if how != "pread by O_DIRECT" || !strings.Contains(why, "aligned buffers") && size != 8192 || in > 0.3 { // opening reads the header, and some pages after it
			t.Errorf("%d bytes: %q, %q, %v", size, how, why, in)
		}
	}
}

// Without being asked, records of a dataset that is much larger than memory are read past the page cache.
func TestLargerThanMemory(t *testing.T) {
	const size = 100_000
	path := bytesDataset(t, size, 64*size)
	for memory, exceeds := range map[int64]bool{0: false, 16 * size: true, 33 * size: false} {
		ds := openCold(t, path, mmapds.WithMemory(memory))
		checkGather(t, ds, []int{3, 50, 3, 0, 7}, size)
		how, why, _ := ds.DescribeReads("x")
		if strings.Contains(why, "O_DIRECT is not possible") {
			t.Logf("not shown here: %s", why)
			continue
		}
		if direct := how == "pread by O_DIRECT"; direct != exceeds || exceeds != strings.Contains(why, "twice as large as memory") {
			t.Errorf("%d bytes of memory: %q, %q", memory, how, why)
		}
	}
}

func TestDirectErrors(t *testing.T) {
	const size = 100_000
	path := bytesDataset(t, size, 100*size)
	file := filepath.Join(path, "x-00000.npy")
	ds := openCold(t, path, mmapds.WithRead(mmapds.ReadDirect), mmapds.WithVerify(mmapds.VerifyAlways))
	datasettest.Rewrite(t, file, datasettest.Flip(4096+7*size+5))
	err := ds.Gather(t.Context(), "x", []int{6, 7}, make([]byte, 2*size))
	var d *store.CorruptionError
	if !errors.As(err, &d) || d.Record() != 7 {
		t.Errorf("corruption: %v", err)
	}
	cut(t, file, 4096+50*size+1)
	for _, record := range []int{50, 60} {
		err = ds.Gather(t.Context(), "x", []int{49, record}, make([]byte, 2*size))
		var r *mmapds.ReadError
		if !errors.As(err, &r) || r.Record() != record || !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("truncated: %v", err)
		}
	}
}
