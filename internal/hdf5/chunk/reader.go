package chunk

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Options configures a Reader. The zero value is usable.
type Options struct {
	// Pool is the workers to use; nil means a pool of the Reader's own, of GOMAXPROCS workers.
	Pool *Pool
	// CacheBytes limits the memory of chunks of which a part was wanted; 0 means 64 MiB. There is always room for one
	// chunk for each worker and one more.
	CacheBytes int64
	// Warm, if it is not nil, is called with a range of a mapped file before its bytes are read, by several goroutines.
	// It can bring pages in with a system call: a page fault would block a P of the scheduler.
	Warm func(offset, size int64) error
	// Exact reads only the bytes that are asked for, and nothing ahead: for a file whose other bytes have not arrived
	// yet.
	Exact bool
	// References reads elements of variable length as the stored references, which meta.Heap follows.
	References bool
}

// Reader reads records of one dataset of an HDF5 file, which are steps along its first axis; a scalar is one record.
// Its methods may be called from any goroutine.
//
// Beyond the Pool's memory, a Reader takes the table of chunks, 80 bytes for each, and the cache: at most
// Options.CacheBytes or Workers+1 chunks, whichever is more, and no more than a record needs.
type Reader struct {
	data  *dataset
	own   bool // the pool belongs to this Reader alone
	ahead readahead

	mu   sync.Mutex
	idle []*call
}

// NewReader returns a Reader of data, which is in the file that src reads. It reads the index of the chunks, and no
// elements.
//
// It reads all layouts with the data in the file, and the filters that the package names. Numbers are returned in the
// byte order of this machine, which must be little endian; other types of fixed size are returned as stored. Anything
// else is meta.ErrUnsupported, and the error names it; a corrupt index is meta.ErrCorrupt.
func NewReader(src io.ReaderAt, data *meta.Dataset, opts Options) (*Reader, error) {
	return newReader(source{r: src}, data, opts)
}

// NewMapped is NewReader for a file that is mapped, or otherwise in memory. If the file was truncated since then,
// reading a lost page is an error of Records and Gather, and does not end the process.
func NewMapped(file []byte, data *meta.Dataset, opts Options) (*Reader, error) {
	return newReader(source{mapped: file}, data, opts)
}

func newReader(src source, data *meta.Dataset, opts Options) (*Reader, error) {
	src.warm = opts.Warm
	d := &dataset{path: data.Path, src: src, exact: opts.Exact}
	if err := d.open(data, opts); err != nil {
		return nil, refused(data, err)
	}
	r := withPool(d, opts.Pool)
	d.cache = newCache(d.cached(opts.CacheBytes))
	return r, nil
}

// withPool returns a Reader with that pool, or with its own if pool is nil.
func withPool(d *dataset, pool *Pool) *Reader {
	if d.pool = pool; pool == nil {
		d.pool = NewPool(0)
	}
	return &Reader{data: d, own: pool == nil}
}

// Len returns the number of records.
func (r *Reader) Len() int64 { return r.data.grid.dims[0] }

// RecordBytes returns the bytes of a record.
func (r *Reader) RecordBytes() int { return r.data.grid.record }

// ChunkRecords returns how many records a chunk has a part of; for data without chunks, how many are read at a time.
func (r *Reader) ChunkRecords() int64 { return r.data.grid.deep }

// Close ends the pool, if it belongs to this Reader alone. No goroutine may use the Reader at that moment.
func (r *Reader) Close() {
	if r.own {
		r.data.pool.Close()
	}
}

// Offset returns the place of a record's chunk in the file; 0 if the chunk was never written.
func (r *Reader) Offset(record int64) (at int64) {
	r.Stored(record, record+1, func(offset, _ int64) { at = offset })
	return at
}

// Stored calls f with the places of the bytes that Records(a, b) would read, if they are in one file. The records must
// exist.
func (r *Reader) Stored(a, b int64, f func(offset, size int64)) {
	g := &r.data.grid
	if r.data.flat && r.data.base >= 0 {
		n := int64(g.record)
		f(r.data.base+a*n, (b-a)*n)
	}
	if a == b || r.data.flat || r.data.outside != nil {
		return
	}
	for place := a / g.deep * g.columns; place < ((b-1)/g.deep+1)*g.columns; place++ {
		if s, ok := r.data.find(place); ok {
			f(s.offset, s.size)
		}
	}
}

// Records fills dst with records [a, b), which must exist. len(dst) must be the length of these records. Every chunk is
// decompressed once, by several workers, and straight into dst if it is whole records that are all wanted. After the
// first calls nothing is allocated.
func (r *Reader) Records(ctx context.Context, dst []byte, a, b int64) error {
	if a < 0 || b < a || b > r.Len() {
		return fmt.Errorf("hdf5: dataset %q: records [%d, %d) of %d do not exist", r.data.path, a, b, r.Len())
	}
	if int64(len(dst)) != (b-a)*int64(r.data.grid.record) {
		panic("hdf5: Records: dst has not the length of the records asked for")
	}
	c := r.call(ctx, dst)
	defer r.recycle(c)
	c.request.addRun(a, b)
	return c.run(&r.ahead)
}

// Gather is Records for records in any order, which may repeat: record indices[i] goes to dst[i*RecordBytes:]. Records
// are grouped by chunk first, so that each chunk is decompressed once.
func (r *Reader) Gather(ctx context.Context, dst []byte, indices []int) error {
	for _, i := range indices {
		if i < 0 || int64(i) >= r.Len() {
			return fmt.Errorf("hdf5: dataset %q: record %d of %d does not exist", r.data.path, i, r.Len())
		}
	}
	if len(dst) != len(indices)*r.data.grid.record {
		panic("hdf5: Gather: dst has not the length of the records asked for")
	}
	c := r.call(ctx, dst)
	defer r.recycle(c)
	c.request.addAll(indices)
	return c.run(&r.ahead)
}

// Run is N records from First on. They go to dst[To*RecordBytes:].
type Run struct{ First, N, To int64 }

// Runs is Gather for runs of records, which must exist, and may overlap. It sorts runs by First, as records are grouped
// by chunk. Places of dst without a run stay as they are.
func (r *Reader) Runs(ctx context.Context, dst []byte, runs []Run) error {
	room := int64(0)
	if r.data.grid.record > 0 {
		room = int64(len(dst) / r.data.grid.record)
	}
	for _, x := range runs {
		if x.First < 0 || x.N < 0 || x.N > r.Len() || x.First > r.Len()-x.N {
			return fmt.Errorf("hdf5: dataset %q: records [%d, %d) of %d do not exist", r.data.path, x.First, x.First+x.N,
				r.Len())
		}
		if x.To < 0 || x.N > room || x.To > room-x.N {
			panic("hdf5: Runs: a run goes outside of dst")
		}
	}
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.To, b.To)) })
	c := r.call(ctx, dst)
	defer r.recycle(c)
	for _, x := range runs {
		c.request.addRunTo(x.First, x.First+x.N, x.To)
	}
	return c.run(&r.ahead)
}

// call returns a call that no goroutine uses.
func (r *Reader) call(ctx context.Context, dst []byte) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var c *call
	if n := len(r.idle); n > 0 {
		c, r.idle = r.idle[n-1], r.idle[:n-1]
	} else {
		c = &call{request: request{data: r.data}}
	}
	c.begin(ctx, dst)
	return c
}

// recycle keeps a call and its lists for the next call, so that reading batches allocates nothing. It drops dst, which
// belongs to the caller.
func (r *Reader) recycle(c *call) {
	c.request.ctx, c.request.dst = nil, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, c)
}
