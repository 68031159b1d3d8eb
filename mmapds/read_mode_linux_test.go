package mmapds_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// evict drops a dataset's files from the page cache and reports whether it could: no page
// may be mapped in page tables.
func evict(t testing.TB, path string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, "*"))
	require.NoError(t, err)
	for _, name := range files {
		f, err := os.Open(name)
		require.NoError(t, err)
		err = errors.Join(unix.Fsync(int(f.Fd())), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		require.NoError(t, err)
	}
}

// openCold opens a dataset none of whose records is in memory, or skips the test.
func openCold(t testing.TB, path string, opts ...mmapds.Option) *mmapds.Dataset {
	t.Helper()
	ds := openEvicted(t, path, opts...)
	t.Cleanup(func() {
		if err := ds.Close(); err != nil {
			t.Error(err)
		}
	})
	return ds
}

// openEvicted is openCold for those who close it.
func openEvicted(t testing.TB, path string, opts ...mmapds.Option) *mmapds.Dataset {
	t.Helper()
	evict(t, path)
	ds, err := mmapds.Open(path, opts...)
	require.NoError(t, err)
	if _, _, in := ds.DescribeReads("x"); in > 0.25 {
		t.Skipf("this file system keeps %.0f %% of a file in memory", 100*in)
	}
	return ds
}

// wantBytes is record i of bytesDataset.
func wantBytes(i, size int) []byte {
	b := make([]byte, size)
	for k := 0; k < size; k += 64 {
		b[k] = byte(i + k/64)
	}
	return b
}

func TestColdGather(t *testing.T) {
	const size = 100_000
	path := bytesDataset(t, size, 100*size)
	indices := []int{3, 99, 3, 0, 50, 51, 7}
	for read, how := range map[mmapds.ReadMode][2]string{
		mmapds.ReadAuto: {"pread", "mapped and pread"}, mmapds.ReadMapped: {"mapped", "mapped"}, mmapds.ReadPread: {"pread", "pread"},
	} {
		for _, checks := range []mmapds.VerifyMode{mmapds.VerifyOff, mmapds.VerifyAlways} {
			t.Run(fmt.Sprint(read, checks), func(t *testing.T) {
				ds := openCold(t, path, mmapds.WithRead(read), mmapds.WithVerify(checks))
				for round := range 2 {
					checkGather(t, ds, indices, size)
					got, why, in := ds.DescribeReads("x")
					if got != how[round] || in <= 0 || !strings.Contains(why, "% of the pages are in memory") {
						t.Errorf("round %d: %q, %q, %v; want %q", round, got, why, in, how[round])
					}
				}
			})
		}
	}
}

func checkGather(t *testing.T, ds *mmapds.Dataset, indices []int, size int) {
	t.Helper()
	dst := make([]byte, len(indices)*size)
	require.NoError(t, ds.Gather(t.Context(), "x", indices, dst))
	for k, i := range indices {
		if !bytes.Equal(dst[k*size:][:size], wantBytes(i, size)) {
			t.Errorf("record %d: wrong bytes", i)
		}
	}
}

// Over waits for pages that are not in memory before it hands a record out, so that the file may
// be cut meanwhile: that is an error, no fault.
func TestColdOver(t *testing.T) {
	for _, size := range []int{784, 100_000} {
		path := bytesDataset(t, size, 100*size)
		ds := openCold(t, path)
		checkOver(t, ds, "x", backwards(100))
		if _, _, in := ds.DescribeReads("x"); in != 1 {
			t.Errorf("%d bytes: %v in memory after all was read", size, in)
		}
	}
	const size = 100_000
	path := bytesDataset(t, size, 100*size)
	ds := openCold(t, path)
	cut(t, filepath.Join(path, "x-00000.npy"), 4096+50*size)
	var n int
	var last error
	for _, last = range records(t, ds, "x").Iter([]int{1, 48, 60, 2}) {
		n++
	}
	var r *mmapds.ReadError
	if n != 3 || !errors.As(last, &r) || r.Record() != 60 {
		t.Errorf("truncated: %d records, error %v", n, last)
	}
}

// Some records of a batch are in memory, others not.
func TestHalfColdGather(t *testing.T) {
	const size = 100_000
	path := bytesDataset(t, size, 100*size)
	ds := openCold(t, path)
	other := openCold(t, path, mmapds.WithRead(mmapds.ReadPread)) // reads no more than it must
	checkGather(t, other, []int{22, 25, 0, 99}, size)
	checkGather(t, ds, []int{25, 60, 61, 0, 99, 80, 22, 40}, size)
	if how, why, _ := ds.DescribeReads("x"); how != "mapped and pread" || !strings.Contains(why, "4 records of 97 KiB that were not were read by pread") {
		t.Errorf("%q, %q", how, why)
	}
}

func TestPreadErrors(t *testing.T) {
	const size = 100_000
	path := bytesDataset(t, size, 100*size)
	file := filepath.Join(path, "x-00000.npy")
	datasettest.Rewrite(t, file, datasettest.Flip(4096+7*size+5))
	ds := openCold(t, path, mmapds.WithRead(mmapds.ReadPread), mmapds.WithVerify(mmapds.VerifyFirstTouch))
	err := ds.Gather(t.Context(), "x", []int{6, 7, 8}, make([]byte, 3*size))
	var d *store.CorruptionError
	if !errors.As(err, &d) || d.Record() != 7 || d.Path != file || d.Offset != 4096+7*size {
		t.Errorf("corruption: %v", err)
	}
	cut(t, file, 4096+50*size)
	err = ds.Gather(t.Context(), "x", []int{49, 60}, make([]byte, 2*size))
	var r *mmapds.ReadError
	if !errors.As(err, &r) || r.Record() != 60 || !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("truncated: %v", err)
	}
	if err := ds.Gather(t.Context(), "x", []int{0, 100}, make([]byte, 2*size)); err == nil {
		t.Error("a record that does not exist: no error")
	}
}

// Pages that the kernel takes back are found by a look, and brought in again by the next read.
func TestEvictionIsNoticed(t *testing.T) {
	const size = 10_000
	path := bytesDataset(t, size, 400*size)
	ds := openCold(t, path)
	require.NoError(t, ds.Warm("x", 0, ds.Len()))
	all, err := ds.Slice("x", 0, ds.Len())
	require.NoError(t, err)
	unmapPages(t, all.Bytes())
	evict(t, path)
	if _, _, in := ds.DescribeReads("x"); in > 0.25 {
		t.Skipf("%.0f %% of the pages stay in memory", 100*in)
	}
	time.Sleep(300 * time.Millisecond) // a look is due
	require.NoError(t, ds.Warm("x", 0, ds.Len()))
	if _, why, in := ds.DescribeReads("x"); in < 0.95 || !strings.Contains(why, "taken out of memory 1 time") {
		t.Errorf("%v in memory; %q", in, why)
	}
}

// unmapPages takes pages out of this process' page tables, so that they can be evicted.
func unmapPages(t *testing.T, b []byte) {
	t.Helper()
	page := os.Getpagesize()
	require.NoError(t, unix.Madvise(b[:len(b)/page*page], unix.MADV_DONTNEED))
}

func TestReads(t *testing.T) {
	ds := openChecked(t, build(t, 10), mmapds.VerifyFirstTouch)
	require.NoError(t, ds.Warm("images", 0, 10))
	how, why, in := ds.DescribeReads("images")
	if how != "mapped" || in != 1 || !regexp.MustCompile(`^100 % of the pages are in memory; checked at first touch, \d\.\d MB so far, which took [0-9.]+[µm]?s$`).MatchString(why) {
		t.Errorf("%q, %q, %v", how, why, in)
	}
	if how, _, in := ds.DescribeReads("none"); how != "" || in != -1 {
		t.Errorf("no such field: %q, %v", how, in)
	}
	ds, err := mmapds.Open(h5test.File(t, `
    f["x"] = np.arange(100)
    f["y"] = np.arange(100).astype(">i8")
    f.create_dataset("z", data=np.arange(100), chunks=(10,), compression="gzip")
    f.create_dataset("c", data=np.arange(100), chunks=(10,))`), mmapds.WithVerify(mmapds.VerifyAlways))
	require.NoError(t, err)
	defer ds.Close()
	if _, why, _ := ds.DescribeReads("x"); !strings.Contains(why, "it has no checksums") {
		t.Errorf("without checksums: %q", why)
	}
	for name, want := range map[string][2]string{
		"y": {"copied", "its bytes must be swapped"},
		"z": {"inflated", "cannot be mapped, gzip by " + chunk.Backend},
		"c": {"copied", "layout chunked cannot be mapped"},
	} {
		how, why, in := ds.DescribeReads(name)
		if how != want[0] || !strings.Contains(why, want[1]) || !strings.Contains(why, "it has no checksums") || in != -1 {
			t.Errorf("%s: %q, %q, %v", name, how, why, in)
		}
	}
}

// TestReadsOfOddPlaces reads arrays that h5py put wherever the one before ended.
func TestReadsOfOddPlaces(t *testing.T) {
	ds := open(t, h5test.File(t, `
    for k in range(1, 9):
        f["u%d" % k] = np.zeros((3, k), "u1")
        f["v%d" % k] = np.arange(3)`))
	defer ds.Close()
	odd := 0
	for _, spec := range ds.Specs() {
		how, why, _ := ds.DescribeReads(spec.Name)
		if how == "copied" && strings.Contains(why, "which is no multiple of its element size") {
			odd++
		} else if how != "mapped" {
			t.Errorf("%s: %q, %q", spec.Name, how, why)
		}
	}
	if odd == 0 {
		t.Error("none of them begins at an odd place")
	}
}

// A file that is cut short after its pages were brought in stops a copy in its middle, whatever
// instruction copies: it is an error that names the record.
func TestTruncatedWhileWarm(t *testing.T) {
	for _, size := range []int{784, 100_000} {
		path := bytesDataset(t, size, 100*size)
		ds := openCold(t, path, mmapds.WithRead(mmapds.ReadMapped))
		all := make([]int, 100)
		for i := range all {
			all[i] = 99 - i
		}
		dst := make([]byte, 100*size)
		require.NoError(t, ds.Gather(t.Context(), "x", all, dst))
		cut(t, filepath.Join(path, "x-00000.npy"), 4096+50*int64(size))
		err := ds.Gather(t.Context(), "x", all, dst)
		var r *mmapds.ReadError
		if !errors.As(err, &r) || r.Record() < 50 || r.Offset < 4096+50*int64(size) || !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%d bytes: error %v", size, err)
		}
		checkGather(t, ds, []int{3, 49, 0}, size)
	}
}
