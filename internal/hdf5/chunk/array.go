package chunk

import "fmt"

// Array is a chunked array that is not in an HDF5 file, such as an array of Zarr.
type Array struct {
	Path      string  // for errors
	Dims      []int64 // elements, records first
	ChunkDims []int64 // elements of a chunk
	Elem      int64   // bytes of an element
	Fill      []byte  // an element that was never written; nil means zeros
	Chunks    Chunks
}

// NewArray returns a Reader of an array. A chunk may reach over the edge of the array; only its part inside of the
// array is read.
func NewArray(a Array, opts Options) (*Reader, error) {
	if len(a.Dims) < 1 || len(a.Dims) > maxRank || len(a.ChunkDims) != len(a.Dims) {
		return nil, fmt.Errorf("shape %v in chunks of %v has no records", a.Dims, a.ChunkDims)
	}
	for i, n := range a.ChunkDims {
		if n < 1 || a.Dims[i] < 0 {
			return nil, fmt.Errorf("shape %v in chunks of %v is impossible", a.Dims, a.ChunkDims)
		}
	}
	d := &dataset{path: a.Path, exact: opts.Exact, fill: a.Fill, outside: a.Chunks}
	var err error
	if d.grid, err = newGrid(a.Dims, a.ChunkDims, a.Elem); err != nil {
		return nil, err
	}
	r := withPool(d, opts.Pool)
	limit := opts.CacheBytes
	if limit <= 0 {
		limit = cacheBytes
	}
	// By default other libraries write chunks of many records, which reading in random order needs again and again.
	d.cache = newCache(int(max(int64(d.pool.Workers())+1,
		min(limit/int64(max(1, d.grid.size)), d.grid.rows*d.grid.columns))))
	return r, nil
}
