package layout

import (
	"math"
	"slices"
	"sort"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// ChunkMap says where the chunks of a dataset in an HDF5 file are.
type ChunkMap struct {
	Field   string  `json:"field"`
	Shape   []int64 `json:"shape"`        // of a chunk
	Bytes   int64   `json:"bytes"`        // bytes of a chunk before its filters
	Index   string  `json:"index"`        // the kind of chunk index, such as a version 1 B-tree
	IndexAt int64   `json:"index_offset"` // -1 if there is none
	Count   int64   `json:"chunks"`       // stored
	Places  int64   `json:"places"`       // chunks that the whole shape has; a missing chunk has the fill value
	Stored  int64   `json:"stored"`       // bytes of all stored chunks
	// Smallest, Median and Largest are bytes of a stored chunk. From is the place in the file
	// where the first chunk begins, and To the place where the last chunk ends. All are 0 if
	// no chunk is stored.
	Smallest int64  `json:"smallest"`
	Median   int64  `json:"median"`
	Largest  int64  `json:"largest"`
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	Problem  string `json:"problem,omitempty"` // why the index cannot be read; all numbers are 0 then
}

// chunked returns the datasets of a file that have chunks.
func chunked(f *meta.File) (list []*meta.Dataset) {
	for _, d := range f.Datasets() {
		if d.Err == nil && d.Layout.Kind == meta.Chunked {
			list = append(list, d)
		}
	}
	return list
}

// chunks reads the chunk indexes, and names the gaps in the file that they account for.
func (l *Layout) chunks(f *meta.File, gaps []gap) {
	for _, d := range chunked(f) {
		m := ChunkMap{Field: d.Path[1:], Shape: d.Layout.ChunkDims, Index: d.Layout.Index.String(), IndexAt: d.Layout.IndexAt}
		t, err := d.Chunks()
		if err != nil {
			m.Problem = err.Error()
			mark(gaps, m.Field)
		} else {
			m.measure(d, t)
			assign(gaps, m.Field, t)
		}
		l.Chunks = append(l.Chunks, m)
	}
}

// measure fills m from the index t of d. The number of places comes from the file, so a product
// that overflows is replaced by the largest int64.
func (m *ChunkMap) measure(d *meta.Dataset, t *meta.ChunkTable) {
	m.Bytes, m.Count, m.Places = t.Bytes, int64(len(t.Chunks)), 1
	for i, n := range d.Layout.ChunkDims {
		on := d.Dims[i]/n + min(d.Dims[i]%n, 1)
		if on > 0 && m.Places > math.MaxInt64/on {
			m.Places = math.MaxInt64
			break
		}
		m.Places *= on
	}
	if m.Count == 0 {
		return
	}
	sizes := make([]int64, len(t.Chunks))
	m.From = t.Chunks[0].Offset
	for i, c := range t.Chunks {
		sizes[i] = c.Size
		m.Stored += c.Size
		m.From, m.To = min(m.From, c.Offset), max(m.To, c.Offset+c.Size)
	}
	slices.Sort(sizes)
	m.Smallest, m.Median, m.Largest = sizes[0], sizes[len(sizes)/2], sizes[len(sizes)-1]
}

// gap is a run of bytes that no object header leads to: chunks, their indexes and free space. known
// is the number of its bytes that indexes account for.
type gap struct {
	from, to int64
	piece    int // its number in Layout.Pieces
	known    int64
	unread   bool // an index could not be read, so its chunks may be in any gap
	parts    []part
}

// part is the part of a gap that belongs to one dataset.
type part struct {
	field         string
	chunks, index int64 // number of chunks, and bytes of the index
}

// find returns the gap in which a run of bytes at offset `at` begins, or nil.
func find(gaps []gap, at int64) *gap {
	i := sort.Search(len(gaps), func(i int) bool { return gaps[i].to > at })
	if i == len(gaps) || gaps[i].from > at {
		return nil
	}
	return &gaps[i]
}

// of returns the part of a field, and appends it if it is new. Fields come one after the other, so
// only the last part can be the field's.
func (g *gap) of(field string) *part {
	if n := len(g.parts); n == 0 || g.parts[n-1].field != field {
		g.parts = append(g.parts, part{field: field})
	}
	return &g.parts[len(g.parts)-1]
}

// assign adds the chunks and the index of a field to the gaps in which they are.
func assign(gaps []gap, field string, t *meta.ChunkTable) {
	for _, c := range t.Chunks {
		if g := find(gaps, c.Offset); g != nil {
			g.of(field).chunks++
			g.known += min(c.Size, g.to-c.Offset)
		}
	}
	for _, e := range t.Index {
		if g := find(gaps, e.Offset); g != nil {
			g.of(field).index += e.Size
			g.known += min(e.Size, g.to-e.Offset)
		}
	}
}

// mark records in every gap that it may have chunks of a field whose index cannot be read.
func mark(gaps []gap, field string) {
	for i := range gaps {
		gaps[i].unread = true
		gaps[i].of(field)
	}
}
