package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Options configures a Reader. The zero value is usable.
type Options struct {
	// Pool does the work; nil means a pool of the Reader's own, of GOMAXPROCS workers.
	Pool *Pool
	// CacheBytes is how much memory chunks may take that were wanted in part; 0 means 64 MiB.
	// There is always room for one chunk a worker and one more.
	CacheBytes int64
	// Warm, if it is not nil, is called with bytes of a mapped file before they are read, by
	// several goroutines. It can bring pages in by a system call, as a fault would stop a
	// processor of the scheduler.
	Warm func(offset, size int64) error
	// Exact reads only the bytes asked for: for a file whose other bytes are not there yet.
	Exact bool
	// References reads elements of variable length as the references that are stored, which meta.Heap follows.
	References bool
}

const cacheBytes = 64 << 20

// Reader reads records of one dataset of an HDF5 file, which are steps along its first axis;
// a scalar is one record. Its methods may be called from any goroutine.
//
// Memory beyond that of the Pool is the table of chunks, 80 bytes a chunk, and the cache:
// at most Options.CacheBytes or Workers+1 chunks, whichever is more, and no more than a
// record needs.
type Reader struct {
	path    string
	src     source
	grid    grid
	filter  pipeline
	outside Chunks // of an array that is not in an HDF5 file: instead of src, filter and chunks
	number  numbers
	fill    []byte // value of what was never written; nil means zeros

	exact  bool // nothing is read ahead
	flat   bool // not chunked: one piece at base, -1 if it was never written
	base   int64
	chunks []meta.Chunk
	places []int64 // of chunks in the grid; nil if every place has one

	cache *cache
	pool  *Pool
	own   bool // pool is of this Reader alone

	mu   sync.Mutex
	idle []*call
	row  span // what was read last, and ahead
}

// NewReader returns a Reader of data, which is in the file that src reads. It reads the
// index of the chunks, no elements.
//
// Read are all layouts with the data in the file, and the filters that the package names; numbers come in the order of bytes of this machine, which must be
// little endian, everything else of fixed size as stored. The error of anything else is
// meta.ErrUnsupported and says what it is; that of a corrupt index is meta.ErrCorrupt.
func NewReader(src io.ReaderAt, data *meta.Dataset, opts Options) (*Reader, error) {
	return newReader(source{r: src}, data, opts)
}

// NewMapped is NewReader for a file that is mapped, or otherwise in memory. A page that the
// file has lost since then is an error of Records and Gather, no fault.
func NewMapped(file []byte, data *meta.Dataset, opts Options) (*Reader, error) {
	return newReader(source{mapped: file}, data, opts)
}

func newReader(src source, data *meta.Dataset, opts Options) (*Reader, error) {
	src.warm = opts.Warm
	r := &Reader{path: data.Path, src: src, pool: opts.Pool, exact: opts.Exact}
	if err := r.open(data, opts.References); err != nil {
		return nil, refused(data, err)
	}
	if r.pool == nil {
		r.pool, r.own = NewPool(0), true
	}
	r.cache = newCache(r.cached(opts.CacheBytes))
	return r, nil
}

// refused says of which dataset an error of open is, and the command that rewrites it where there
// is one.
func refused(data *meta.Dataset, err error) error {
	if line := data.Remedy("OLD.h5", "NEW.h5"); line != "" && errors.Is(err, meta.ErrUnsupported) {
		return fmt.Errorf("hdf5: dataset %q: %w; make a file that can be read: %s", data.Path, err, line)
	}
	return fmt.Errorf("hdf5: dataset %q: %w", data.Path, err)
}

// cached returns how many chunks the cache may have. More than those of one row help nobody
// who reads in order, and fewer help nobody if a record needs all.
func (r *Reader) cached(limit int64) int {
	if limit <= 0 {
		limit = cacheBytes
	}
	least := r.pool.Workers() + 1
	row := r.grid.columns + int64(least)
	if r.grid.size > 0 && row > limit/int64(r.grid.size) {
		return least
	}
	return int(row)
}

func (r *Reader) open(data *meta.Dataset, references bool) (err error) {
	if err := readable(data, references); err != nil {
		return err
	}
	if err := r.lay(data); err != nil {
		return err
	}
	if r.filter, err = newPipeline(data.Filters, data.Type.Size, r.grid.size); err != nil {
		return err
	}
	r.number = numbersOf(data.Type)
	r.setFill(data)
	if r.flat {
		return nil
	}
	return r.index(data)
}

// lay finds out how records are in chunks, or what is read at a time where there are none.
func (r *Reader) lay(data *meta.Dataset) (err error) {
	dims, chunk := data.Dims, data.Layout.ChunkDims
	if len(dims) == 0 {
		dims = []int64{1}
	}
	if r.flat = data.Layout.Kind != meta.Chunked; r.flat {
		r.base, chunk = data.Layout.Offset, flatChunk(dims, data.Type.Size)
	}
	r.grid, err = newGrid(dims, chunk, data.Type.Size)
	return err
}

// flatChunk divides data that has no chunks, so that many goroutines can work on it.
func flatChunk(dims []int64, elem int64) []int64 {
	chunk := append([]int64(nil), dims...)
	record := elem
	for _, n := range dims[1:] {
		if !fits(record, n) {
			break
		}
		record *= n
	}
	chunk[0] = max(1, (1<<20)/max(1, record))
	for i := range chunk {
		chunk[i] = max(chunk[i], 1)
	}
	return chunk
}

// readable refuses data that is elsewhere, or of a type without fixed bytes, unless their references are wanted.
func readable(data *meta.Dataset, references bool) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), meta.ErrUnsupported)
	}
	switch {
	case data.Err != nil:
		return data.Err
	case data.Null:
		return refuse("a null dataspace has no elements")
	case len(data.External) > 0:
		return refuse("its data is in external files (%s)", data.External[0].Name)
	case data.Layout.Kind == meta.Virtual:
		return refuse("a virtual dataset has its data in other datasets%s", firstSource(data))
	case data.Layout.Kind != meta.Chunked && len(data.Filters) > 0:
		return refuse("layout %v with filter %v", data.Layout.Kind, data.Filters[0])
	case !plainBytes(data.Type, references):
		return refuse("type %v", data.Type)
	}
	return nil
}

// firstSource names one of the datasets that a virtual one is made of.
func firstSource(data *meta.Dataset) string {
	list, err := data.Sources()
	if err != nil || len(list) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s:%s)", list[0].File, list[0].Path)
}

// plainBytes reports whether the bytes of an element mean something by themselves, or are references that are wanted.
func plainBytes(t *meta.Datatype, references bool) bool {
	switch t.Class {
	case meta.Vlen, meta.Reference:
		return references
	case meta.Time:
		return false
	case meta.Array, meta.Enum, meta.Complex:
		return plainBytes(t.Base, references)
	case meta.Compound:
		for _, m := range t.Members {
			if !plainBytes(m.Type, references) {
				return false
			}
		}
	}
	return !t.Format.VAXOrder
}

// swapped returns the size of the numbers whose bytes have to be turned around, or 0.
func swapped(t *meta.Datatype) int {
	for t.Class == meta.Array || t.Class == meta.Enum || t.Class == meta.Complex {
		t = t.Base
	}
	if t.BigEndian && t.Size > 1 {
		return int(t.Size)
	}
	return 0
}

func (r *Reader) setFill(data *meta.Dataset) {
	if data.Fill.State != meta.FillUser {
		return
	}
	r.fill = append([]byte(nil), data.Fill.Value...)
	r.number.decode(r.fill)
}

// index reads the table of chunks.
func (r *Reader) index(data *meta.Dataset) error {
	table, err := data.Chunks()
	if err != nil {
		return err
	}
	r.chunks = table.Chunks
	if int64(len(r.chunks)) == r.grid.rows*r.grid.columns {
		return nil
	}
	r.places = make([]int64, len(r.chunks))
	for i, c := range r.chunks {
		r.places[i] = r.grid.place(c.Coord)
	}
	return nil
}

// Len returns the number of records.
func (r *Reader) Len() int64 { return r.grid.dims[0] }

// RecordBytes returns the bytes of a record.
func (r *Reader) RecordBytes() int { return r.grid.record }

// ChunkRecords returns how many records a chunk has a part of; of data that has no chunks, what
// is read at a time.
func (r *Reader) ChunkRecords() int64 { return r.grid.deep }

// Close ends the pool, if the Reader has one of its own. Nobody may use the Reader then.
func (r *Reader) Close() {
	if r.own {
		r.pool.Close()
	}
}

// stored is where a chunk is.
type stored struct {
	place        int64
	offset, size int64
	mask         uint32
}

// find returns the chunk in that place of the grid; ok is false if it was never written.
func (r *Reader) find(place int64) (s stored, ok bool) {
	if r.flat {
		size := int64(r.grid.size)
		return stored{place, r.base + place*size, size, 0}, r.base >= 0
	}
	i := int(place)
	if r.places != nil {
		i = sort.Search(len(r.places), func(i int) bool { return r.places[i] >= place })
		if i == len(r.places) || r.places[i] != place {
			return s, false
		}
	}
	c := &r.chunks[i]
	return stored{place, c.Offset, c.Size, c.Mask}, true
}

// Offset returns where the chunk of a record is in the file; 0 if it was never written.
func (r *Reader) Offset(record int64) (at int64) {
	r.Stored(record, record+1, func(offset, _ int64) { at = offset })
	return at
}

// Stored calls f with where the bytes are that Records(a, b) would read, if they are in one file; records must exist.
func (r *Reader) Stored(a, b int64, f func(offset, size int64)) {
	g := &r.grid
	if r.flat && r.base >= 0 {
		n := int64(g.record)
		f(r.base+a*n, (b-a)*n)
	}
	if a == b || r.flat || r.outside != nil {
		return
	}
	for place := a / g.deep * g.columns; place < ((b-1)/g.deep+1)*g.columns; place++ {
		if s, ok := r.find(place); ok {
			f(s.offset, s.size)
		}
	}
}

// Records fills dst with records [a, b), which must exist. len(dst) must be what they need.
// Every chunk is inflated once, by several workers, into dst where it is whole records that
// are all wanted. After the first calls nothing is allocated.
func (r *Reader) Records(ctx context.Context, dst []byte, a, b int64) error {
	if a < 0 || b < a || b > r.Len() {
		return fmt.Errorf("hdf5: dataset %q: records [%d, %d) of %d do not exist", r.path, a, b, r.Len())
	}
	if int64(len(dst)) != (b-a)*int64(r.grid.record) {
		panic("hdf5: Records: dst has not the length of the records asked for")
	}
	c := r.call(ctx, dst)
	defer r.recycle(c)
	c.addRun(a, b)
	return c.run()
}

// Gather is Records for records in any order, which may repeat: record indices[i] goes to
// dst[i*RecordBytes:]. Records are grouped by chunk first.
func (r *Reader) Gather(ctx context.Context, dst []byte, indices []int) error {
	for _, i := range indices {
		if i < 0 || int64(i) >= r.Len() {
			return fmt.Errorf("hdf5: dataset %q: record %d of %d does not exist", r.path, i, r.Len())
		}
	}
	if len(dst) != len(indices)*r.grid.record {
		panic("hdf5: Gather: dst has not the length of the records asked for")
	}
	c := r.call(ctx, dst)
	defer r.recycle(c)
	c.addAll(indices)
	return c.run()
}

// call returns a call that nobody uses.
func (r *Reader) call(ctx context.Context, dst []byte) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var c *call
	if n := len(r.idle); n > 0 {
		c, r.idle = r.idle[n-1], r.idle[:n-1]
	} else {
		c = &call{r: r}
	}
	c.begin(ctx, dst)
	return c
}

func (r *Reader) recycle(c *call) {
	c.ctx, c.dst = nil, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, c)
}
