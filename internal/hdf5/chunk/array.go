package chunk

import (
	"context"
	"fmt"
)

// Chunks are the chunks of an array that is not in an HDF5 file. They are counted row by row through the grid
// that they are in. The methods may be called from any goroutine.
type Chunks interface {
	// Load returns the stored bytes of a chunk, in the memory of buf, which it may replace, where it has to read
	// them; nil if the chunk was never written.
	Load(ctx context.Context, place int64, buf *[]byte) ([]byte, error)

	// Possible reports whether that many stored bytes can be a chunk. It is asked before memory is taken for one.
	Possible(stored int) bool

	// Decode fills dst, of the size of a chunk, with numbers in the order of bytes of this machine and elements in C
	// order. It may use the memory of spare, and replace it.
	Decode(dst, stored []byte, spare *[2][]byte) error

	// Name says which chunk that is, for errors.
	Name(place int64) string
}

// Array is an array that is not in an HDF5 file.
type Array struct {
	Path      string  // for errors
	Dims      []int64 // elements, records first
	ChunkDims []int64 // of a chunk
	Elem      int64   // bytes of an element
	Fill      []byte  // an element that was never written; nil means zeros
	Chunks    Chunks
}

// NewArray returns a Reader of an array. Of chunks that are partly outside of the array, what is inside is read.
func NewArray(a Array, opts Options) (*Reader, error) {
	if len(a.Dims) < 1 || len(a.Dims) > maxRank || len(a.ChunkDims) != len(a.Dims) {
		return nil, fmt.Errorf("shape %v in chunks of %v has no records", a.Dims, a.ChunkDims)
	}
	for i, n := range a.ChunkDims {
		if n < 1 || a.Dims[i] < 0 {
			return nil, fmt.Errorf("shape %v in chunks of %v is impossible", a.Dims, a.ChunkDims)
		}
	}
	r := &Reader{path: a.Path, pool: opts.Pool, exact: opts.Exact, fill: a.Fill, outside: a.Chunks}
	var err error
	if r.grid, err = newGrid(a.Dims, a.ChunkDims, a.Elem); err != nil {
		return nil, err
	}
	if r.pool == nil {
		r.pool, r.own = NewPool(0), true
	}
	limit := opts.CacheBytes
	if limit <= 0 {
		limit = cacheBytes
	}
	// Chunks of other libraries' defaults have many records: who reads in any order wants them again.
	r.cache = newCache(int(max(int64(r.pool.Workers())+1, min(limit/int64(max(1, r.grid.size)), r.grid.rows*r.grid.columns))))
	return r, nil
}

// doArray is do for a chunk that is not in an HDF5 file.
func (c *call) doArray(w *worker, place int64, slots []slot, column int64) (err error) {
	written := true
	switch e := c.r.cache.find(place); {
	case e == nil && c.all(slots[0]):
		dst := c.records(slots[0])
		if written, err = c.r.decodeArray(c.ctx, w, place, func() []byte { return dst }); err != nil || !written {
			break
		}
		for _, s := range slots[1:] {
			copy(c.records(s), dst[s.first*int64(c.r.grid.record):])
		}
	default:
		if e == nil {
			e = c.r.cache.take(place)
		}
		defer c.r.cache.give(e)
		if err = c.r.fillArray(c.ctx, w, e); err == nil {
			if written = !e.blank; written {
				c.scatter(w, e.buf, slots, column)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", c.r.path, c.r.outside.Name(place), err)
	}
	if !written {
		c.fillSlots(w, slots, column)
	}
	return nil
}

// fillArray is fillEntry for a chunk that is not in an HDF5 file.
func (r *Reader) fillArray(ctx context.Context, w *worker, e *entry) error {
	e.fill.Lock()
	defer e.fill.Unlock()
	if e.ok {
		return nil
	}
	written, err := r.decodeArray(ctx, w, e.place, func() []byte { return e.room(r.grid.size) })
	e.ok, e.blank = err == nil, !written
	return err
}

// decodeArray makes a chunk in the memory that room returns, unless it was never written.
func (r *Reader) decodeArray(ctx context.Context, w *worker, place int64, room func() []byte) (written bool, err error) {
	stored, err := r.outside.Load(ctx, place, &w.raw)
	if err != nil || stored == nil {
		return false, err
	}
	if !r.outside.Possible(len(stored)) {
		return false, fmt.Errorf("no chunk of %d bytes is stored as %d", r.grid.size, len(stored))
	}
	return true, r.outside.Decode(room(), stored, &w.spare)
}
