package chunk

import "fmt"

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
	// Chunks of other libraries' defaults have many records: who reads in any order wants them again.
	d.cache = newCache(int(max(int64(d.pool.Workers())+1,
		min(limit/int64(max(1, d.grid.size)), d.grid.rows*d.grid.columns))))
	return r, nil
}
