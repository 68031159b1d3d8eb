package encode

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Recipe says how records become chunks: Records whole ones each, shuffled if Shuffle, then
// deflated.
type Recipe struct {
	Record  int  // bytes of a record
	Elem    int  // bytes of an element
	Records int  // of a chunk
	Level   int  // of deflate, 1 (fast) to 9 (small)
	Shuffle bool // the first bytes of all elements come first, then their second bytes, ...
}

// Filters returns the pipeline that the dataset has to be created with. All its filters are
// optional, as a chunk that does not become smaller is stored as it is.
func (r Recipe) Filters() []meta.Filter {
	deflate := meta.Filter{ID: meta.FilterDeflate, Name: "deflate", Optional: true, Params: []uint32{uint32(r.Level)}}
	if !r.Shuffle {
		return []meta.Filter{deflate}
	}
	shuffle := meta.Filter{ID: meta.FilterShuffle, Name: "shuffle", Optional: true, Params: []uint32{uint32(r.Elem)}}
	return []meta.Filter{shuffle, deflate}
}

// RecipeOf returns how the chunks of a dataset, whose records and elements have those bytes, were made. It reports
// false if not by this package, or by libhdf5 as it would.
func RecipeOf(d *meta.Dataset, record, elem int) (Recipe, bool) {
	r := Recipe{Record: record, Elem: elem, Records: int(d.Layout.ChunkDims[0])}
	for _, f := range d.Filters {
		switch {
		case f.ID == meta.FilterShuffle:
			r.Shuffle = true
		case f.ID == meta.FilterDeflate && len(f.Params) == 1:
			r.Level = int(f.Params[0])
		}
	}
	return r, r.check() == nil && r.Made(d.Filters)
}

// Made reports whether chunks with these filters can be made by r.
func (r Recipe) Made(filters []meta.Filter) bool {
	return slices.EqualFunc(filters, r.Filters(), func(a, b meta.Filter) bool {
		return a.ID == b.ID && slices.Equal(a.Params, b.Params)
	})
}

// Bytes returns the size of a chunk before filters.
func (r Recipe) Bytes() int { return r.Record * r.Records }

func (r Recipe) check() error {
	switch {
	case r.Record <= 0 || r.Elem <= 0 || r.Record%r.Elem != 0:
		return fmt.Errorf("hdf5: records of %d bytes of elements of %d bytes", r.Record, r.Elem)
	case r.Records <= 0 || r.Records > mostChunk/r.Record:
		return fmt.Errorf("hdf5: chunks of %d records of %d bytes; HDF5 has chunks of 1 to %d bytes", r.Records, r.Record,
			mostChunk)
	case r.Level < 1 || r.Level > 9:
		return fmt.Errorf("hdf5: deflate level %d; there are 1 to 9", r.Level)
	}
	return nil
}

// Chunks that ChunkRecords makes, and how many of them it is content with. libhdf5 before
// 1.14 needs time that grows with the square of their number to list them.
const (
	smallChunk = 64 << 10
	largeChunk = 1 << 20
	manyChunks = 1 << 16
	mostChunk  = 1<<32 - 1 // as in libhdf5
)

// ChunkRecords returns how many records of that many bytes should share a chunk, records
// being the number of all: one if it has 64 KiB or more, as reading one record inflates the
// whole chunk; else as many as fit 64 KiB, where deflate has seen enough to do its best, and
// up to 1 MiB where there would be more than 65,536 chunks.
func ChunkRecords(records int64, record int) int {
	n := int64(max(1, smallChunk/record))
	if records/n >= manyChunks {
		n = max(n, min(records/manyChunks+1, int64(largeChunk/record)))
	}
	return int(min(n, max(records, 1)))
}
