package encode

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Recipe says how records become chunks: Records whole ones to a chunk, shuffled if Shuffle is set,
// then deflated.
type Recipe struct {
	Record  int  // bytes of a record
	Elem    int  // bytes of an element; a record has whole ones
	Records int  // in a chunk
	Level   int  // of deflate, 1 (fast) to 9 (small)
	Shuffle bool // the first bytes of all elements come first, then the second ones, and so on
}

// Filters returns the filter pipeline that the dataset has to be created with. All filters are
// optional, so that a chunk which does not become smaller can be stored without them.
func (r Recipe) Filters() []meta.Filter {
	deflate := meta.Filter{ID: meta.FilterDeflate, Name: "deflate", Optional: true, Params: []uint32{uint32(r.Level)}}
	if !r.Shuffle {
		return []meta.Filter{deflate}
	}
	shuffle := meta.Filter{ID: meta.FilterShuffle, Name: "shuffle", Optional: true, Params: []uint32{uint32(r.Elem)}}
	return []meta.Filter{shuffle, deflate}
}

// RecipeOf returns the Recipe by which the chunks of dataset d were made; record and elem are the
// bytes of its records and elements. It reports false if no Recipe gives such chunks, as with other
// filters.
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

// Made reports whether r has exactly these filters, so that an Encoder of r can add chunks to them.
func (r Recipe) Made(filters []meta.Filter) bool {
	return slices.EqualFunc(filters, r.Filters(), func(a, b meta.Filter) bool {
		return a.ID == b.ID && slices.Equal(a.Params, b.Params)
	})
}

// Bytes returns the size of a chunk before filters.
func (r Recipe) Bytes() int { return r.Record * r.Records }

// check returns an error if no Encoder can follow r.
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

// Limits of ChunkRecords, in bytes of a chunk and in chunks. libhdf5 before 1.14 needs time that
// grows with the square of the number of chunks to list them.
const (
	smallChunk = 64 << 10
	largeChunk = 1 << 20
	manyChunks = 1 << 16
	mostChunk  = 1<<32 - 1 // a chunk's size is a uint32 in the file
)

// ChunkRecords returns how many of a dataset's records should share a chunk. records is how many
// there are in all, record the bytes of one.
//
// Reading one record inflates its whole chunk, so a record of 64 KiB or more has its own chunk.
// Smaller records share chunks of 64 KiB, which are large enough for deflate to compress well. If
// that would make more than 65,536 chunks, a chunk gets up to 1 MiB.
func ChunkRecords(records int64, record int) int {
	n := int64(max(1, smallChunk/record))
	if records/n >= manyChunks {
		n = max(n, min(records/manyChunks+1, int64(largeChunk/record)))
	}
	return int(min(n, max(records, 1)))
}
