package chunk

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/require"
)

// rows is a file of 16 chunks of 4 records of 16,384 bytes, and one by which helpers gain nothing.
func rows(t testing.TB) []byte {
	return makeFile(t, `    a = (np.arange(64 * 16384) // 7 % 251).astype("u1").reshape(64, 16384)
    f.create_dataset("x", data=a, chunks=(4, 16384), compression="gzip", fletcher32=True)
    f.create_dataset("plain", data=a, chunks=(4, 16384))`)
}

// Only a call that goes on in order and is the only one reads ahead, as many chunks as there are
// workers with nothing to do, and none that does not exist.
func TestForesee(t *testing.T) {
	pool := NewPool(4)
	defer pool.Close()
	r := mapped(t, rows(t), "x", Options{Pool: pool})
	for i, step := range []struct {
		row, rows int64
		alone     bool
		extra     int64
	}{
		{0, 1, true, 0}, {0, 1, true, 0}, {1, 1, true, 3}, // 2, 3 and 4 ahead
		{2, 1, true, 0}, {4, 1, true, 0}, {5, 2, true, 2}, {7, 2, true, 0},
		{9, 1, false, 0}, {10, 4, true, 0}, {14, 1, true, 1}, {15, 1, true, 0},
		{3, 1, true, 0}, {9, 1, true, 0}, {10, 1, true, 3},
	} {
		c := r.call(t.Context(), nil)
		c.request.addRun(4*step.row, 4*(step.row+step.rows))
		after, extra := r.ahead.foresee(&c.request, step.rows, step.alone)
		if extra != step.extra || extra > 0 && after != step.row+step.rows {
			t.Errorf("step %d, row %d: %d rows ahead from %d on, want %d", i, step.row, extra, after, step.extra)
		}
		r.recycle(c)
	}
	for _, never := range []struct {
		path string
		opts Options
	}{{"x", Options{Pool: NewPool(1)}}, {"plain", Options{Pool: pool}}, {"x", Options{Pool: pool, Exact: true}}} {
		r := mapped(t, rows(t), never.path, never.opts)
		for row := range int64(16) {
			c := r.call(t.Context(), nil)
			c.request.addRun(4*row, 4*row+1)
			if _, extra := r.ahead.foresee(&c.request, 1, true); extra != 0 {
				t.Errorf("%s, %d workers, exact %v: %d rows ahead", never.path, r.data.pool.Workers(), r.data.exact, extra)
			}
			r.recycle(c)
		}
	}
}

// Chunks that were read ahead are not read again.
func TestReadahead(t *testing.T) {
	file := rows(t)
	d, err := openBytes(t, file).Dataset("x")
	require.NoError(t, err)
	src := &countingReader{ReaderAt: bytes.NewReader(file)}
	r, err := NewReader(src, d, Options{})
	require.NoError(t, err)
	defer r.Close()
	w := <-r.data.pool.workers
	r.data.prefetch(w, 5)
	r.data.prefetch(w, 5)
	r.data.pool.workers <- w
	want := all(t, mapped(t, file, "x", Options{}))
	before, got := src.n.Load(), make([]byte, 16384)
	if err := r.Gather(t.Context(), got, []int{22}); err != nil || !bytes.Equal(got, want[22*16384:23*16384]) {
		t.Errorf("error %v, or other bytes", err)
	}
	if n := src.n.Load(); before != 1 || n != 1 {
		t.Errorf("%d reads ahead, %d with the record; want 1", before, n)
	}
}

// Records read in order with prefetching are the same, and corruption is an error of the records that
// it is in, again and again.
func TestCorruptionPrefetch(t *testing.T) {
	file := rows(t)
	want := all(t, mapped(t, file, "x", Options{}))
	d, err := openBytes(t, file).Dataset("x")
	require.NoError(t, err)
	table, err := d.Chunks()
	require.NoError(t, err)
	bad := bytes.Clone(file)
	c := table.Chunks[6]
	bad[c.Offset+c.Size/2] ^= 1
	pool := NewPool(3)
	defer pool.Close()
	r := mapped(t, bad, "x", Options{Pool: pool})
	var failed []int
	got := make([]byte, 16384)
	for i := range 3 * 64 {
		err := r.Gather(t.Context(), got, []int{i % 64})
		switch {
		case errors.Is(err, meta.ErrCorrupt):
			failed = append(failed, i)
		case err != nil || !bytes.Equal(got, want[i%64*16384:][:16384]):
			t.Fatalf("record %d: error %v, or other bytes", i%64, err)
		}
	}
	if !slices.Equal(failed, []int{24, 25, 26, 27, 88, 89, 90, 91, 152, 153, 154, 155}) {
		t.Errorf("failed: %v", failed)
	}
}

// fault is the panic that the runtime raises for an access to memory that is gone.
type fault struct{ at uintptr }

func (f fault) Addr() uintptr { return f.at }

// A missing page that was only prefetched is not an error yet; other panics are not lost.
func TestFaultPrefetch(t *testing.T) {
	r := mapped(t, rows(t), "x", Options{})
	c := r.call(t.Context(), make([]byte, 16384))
	defer r.recycle(c)
	c.request.addRun(4, 5)
	c.jobs, c.extra = c.request.end(), 1
	in := fault{uintptr(unsafe.Pointer(&r.data.src.mapped[5000]))}
	if c.lost(1, in); c.err != nil || c.caught != nil {
		t.Errorf("ahead: error %v, panic %v", c.err, c.caught)
	}
	if c.lost(0, in); !errors.Is(c.err, meta.ErrCorrupt) || c.caught != nil {
		t.Errorf("wanted: error %v, panic %v", c.err, c.caught)
	}
	if c.lost(1, "bug"); c.caught != "bug" {
		t.Errorf("panic %v", c.caught)
	}
}
