package parquet

import (
	"bytes"
	"fmt"
	"io"
	"sort"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
)

// indexed is a reader with random access to rows. It reads a column in pieces (the pages of some rows), each when
// the first value in it is needed, and keeps the values until Close. Any number of goroutines may read.
type indexed struct {
	*reader
	groups []rowGroup
	wide   chan struct{} // holds a value for each large piece that is read
}

// rowGroup is a row group of a file.
type rowGroup struct {
	first, end int64 // rows of the source
	columns    []stripe
}

// stripe is one column of the source in one row group.
type stripe struct {
	column *leafColumn
	file   vfs.Ranger
	part   *part
	group  parquet.RowGroup
	meta   []format.ColumnChunk
	pieces []piece
}

// piece is rows of a stripe that are read together.
type piece struct {
	first, end int64 // rows of the group
	at, bytes  int64 // place in the file; 0 for all pages of the leaves

	mu   sync.Mutex
	read *content // nil before the first read, and after a failed one
}

// content is the values of a piece. It is complete when done is closed.
type content struct {
	done   chan struct{}
	values [][]byte
	errs   map[int]error // by row: why a value is bad
	err    error         // of reading the piece
}

// Limits of reading pieces: consecutive pages of up to pieceBytes are read together. While a piece of more than
// wideBytes is decoded, its pages take memory besides its values, so at most mostWide such pieces are read at a
// time.
const (
	pieceBytes = 1 << 20
	wideBytes  = 8 << 20
	mostWide   = 3

	// leastRow is the least average size in bytes of rows that are read one by one. Smaller rows are better read in
	// order.
	leastRow = 1 << 10
)

// newIndexed returns the reader with random access, nil if rows are small or a file cannot read ranges.
func newIndexed(s *reader) (*indexed, error) {
	x := &indexed{reader: s, wide: make(chan struct{}, mostWide)}
	first := int64(0)
	for i, p := range s.parts {
		if p.NumRows() > p.Size()/leastRow {
			return nil, nil
		}
		file, ok := s.files[i].(vfs.Ranger)
		if !ok {
			return nil, nil
		}
		for k, g := range p.RowGroups() {
			group := rowGroup{first: first, end: first + g.NumRows()}
			for _, c := range s.columns {
				pieces, err := piecesOf(c, file, p, k)
				if err != nil {
					return nil, fmt.Errorf("column %s: index of pages: %w", c.name, err)
				}
				group.columns = append(group.columns, stripe{c, file, p, g, p.Metadata().RowGroups[k].Columns, pieces})
			}
			x.groups, first = append(x.groups, group), group.end
		}
	}
	return x, nil
}

// piecesOf returns the pieces of a column in a row group: runs of pages if the offset index says where they are,
// and the whole column otherwise. Lists are not divided, as their pages may begin within a row, and neither are
// columns with a dictionary, which each piece would need. A wrong index only makes the column a single piece.
func piecesOf(c *leafColumn, file io.ReaderAt, p *part, group int) ([]piece, error) {
	g := &p.Metadata().RowGroups[group]
	whole := []piece{{end: g.NumRows}}
	if c.parts != nil || c.leaf.MaxRepetitionLevel > 0 {
		return whole, nil
	}
	chunk := &g.Columns[p.leaves[c.leaf.ColumnIndex]]
	if chunk.MetaData.TotalCompressedSize <= pieceBytes || chunk.MetaData.DictionaryPageOffset != 0 ||
		chunk.OffsetIndexOffset == 0 {
		return whole, nil
	}
	if layout.Inside(chunk.OffsetIndexOffset, int64(chunk.OffsetIndexLength), p.Size()) != nil {
		return whole, nil
	}
	data := make([]byte, chunk.OffsetIndexLength)
	if err := source.ReadAt(file, data, chunk.OffsetIndexOffset); err != nil {
		return nil, source.WithoutPath(err)
	}
	var index format.OffsetIndex
	if thrift.Unmarshal(&thrift.CompactProtocol{}, data, &index) != nil {
		return whole, nil
	}
	pieces := pagePieces(index.PageLocations, g.NumRows)
	if n := len(pieces); n == 0 || pieces[0].at != chunk.MetaData.DataPageOffset ||
		pieces[n-1].at+pieces[n-1].bytes != chunk.MetaData.DataPageOffset+chunk.MetaData.TotalCompressedSize {
		return whole, nil // the index is of other pages
	}
	return pieces, nil
}

// pagePieces joins pages to pieces of up to pieceBytes. It returns nil if pages are not contiguous or not in the
// order of rows, as an index comes from the file and may be wrong.
func pagePieces(pages []format.PageLocation, rows int64) (list []piece) {
	for i, page := range pages {
		first, end, bytes := page.FirstRowIndex, rows, int64(page.CompressedPageSize)
		if i+1 < len(pages) {
			end = pages[i+1].FirstRowIndex
		}
		n := len(list)
		switch {
		case first < 0 || end <= first || end > rows || bytes <= 0 || i == 0 && first != 0,
			n > 0 && page.Offset != list[n-1].at+list[n-1].bytes:
			return nil
		case n > 0 && list[n-1].bytes+bytes <= pieceBytes:
			list[n-1].end, list[n-1].bytes = end, list[n-1].bytes+bytes
		default:
			list = append(list, piece{first: first, end: end, at: page.Offset, bytes: bytes})
		}
	}
	return list
}

// Sample implements source.Indexed.
func (x *indexed) Sample(i int64) (source.Sample, error) {
	sample := x.place(i)
	// No values yet: rowData reads them when it is asked.
	sample.Data = column.WithFiles(rowData{x, i}, x.paths, x.root, sample.File)
	return sample, nil
}

// SampleName implements source.Named.
func (x *indexed) SampleName(i int64) (string, error) {
	return x.place(i).Name, nil
}

// rowData is the Data of a row. Read fetches its values.
type rowData struct {
	indexed *indexed
	row     int64
}

// Read implements source.Data. All columns are fetched at the same time, as each may take a request to a bucket.
func (d rowData) Read(v *source.Values) error {
	fields := len(d.indexed.columns)
	values := make([][]byte, fields)
	var all errgroup.Group
	for field := range fields {
		all.Go(func() (err error) { values[field], err = d.indexed.value(d.row, field); return err })
	}
	err := all.Wait()
	for field, value := range values {
		v.Borrow(field, value)
	}
	return err
}

// ReadField implements source.Parted for numbers, which are cheap compared to the images of a row.
func (d rowData) ReadField(v *source.Values, field int) bool {
	f := d.indexed.info.Fields[field]
	if f.Ragged || f.Image() {
		return false
	}
	value, err := d.indexed.value(d.row, field)
	if err == nil {
		v.Borrow(field, value)
	}
	return err == nil
}

// value returns the value of a field in a row. Binary search finds the row group, and the piece in it.
func (x *indexed) value(row int64, field int) ([]byte, error) {
	at := sort.Search(len(x.groups), func(i int) bool { return x.groups[i].end > row })
	g := &x.groups[at]
	s := &g.columns[field]
	row -= g.first
	p := &s.pieces[sort.Search(len(s.pieces), func(i int) bool { return s.pieces[i].end > row })]
	c := x.content(s, p)
	if c.err != nil {
		return nil, fmt.Errorf("column %s: %w", s.column.name, c.err)
	}
	at = int(row - p.first)
	return c.values[at], c.errs[at]
}

// content returns the content of a piece. The first caller reads it, and others wait for it. After an error the
// piece is forgotten, so that a later call tries again: a request may have failed for a moment.
func (x *indexed) content(s *stripe, p *piece) *content {
	p.mu.Lock()
	c := p.read
	if c != nil {
		p.mu.Unlock()
		<-c.done
		return c
	}
	c = &content{done: make(chan struct{}), errs: make(map[int]error)}
	p.read = c
	p.mu.Unlock()
	// Waiting readers see the error through c, even though the piece is forgotten.
	defer close(c.done)
	if c.err = x.fill(c, s, p); c.err != nil {
		p.mu.Lock()
		p.read = nil
		p.mu.Unlock()
	}
	return c
}

// fill reads a piece. Whole chunks without a page index can be large, so the channel wide limits how many are read
// at a time.
func (x *indexed) fill(c *content, s *stripe, p *piece) error {
	if s.column.parts == nil && p.bytes == 0 && s.chunk(s.column).bytes > wideBytes {
		x.wide <- struct{}{}
		defer func() { <-x.wide }()
	}
	c.values = make([][]byte, p.end-p.first)
	for _, leaf := range s.column.leaves() {
		err := guardParquet(func() error {
			return s.eachRow(leaf, p, func(i int, row [][]parquet.Value) {
				if c.errs[i] != nil {
					return
				}
				value, err := s.column.extend(c.values[i], leaf, row)
				if c.values[i] = value; err != nil {
					c.errs[i] = err
				}
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// chunk is the bytes of a leaf in a row group.
type chunk struct {
	*parquet.FileColumnChunk
	at, bytes int64
}

// chunk returns the place of a leaf of the stripe: its dictionary page, if any, and its data pages.
func (s *stripe) chunk(leaf *leafColumn) chunk {
	i := s.part.leaves[leaf.leaf.ColumnIndex]
	c, _ := s.group.ColumnChunks()[i].(*parquet.FileColumnChunk) // a file has no others
	m := &s.meta[i].MetaData
	at := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		at = m.DictionaryPageOffset
	}
	return chunk{c, at, min(m.TotalCompressedSize, s.part.Size()-at)}
}

// eachRow calls f with each row of a piece. The row has the values of one leaf only, and is valid during f.
func (s *stripe) eachRow(leaf *leafColumn, p *piece, f func(i int, row [][]parquet.Value)) error {
	c := s.chunk(leaf)
	at, bytes := p.at, p.bytes
	if bytes == 0 {
		at, bytes = c.at, c.bytes
	}
	data := make([]byte, bytes)
	if err := s.file.ReadRange(data, at); err != nil {
		return source.WithoutPath(err)
	}
	pages := c.PagesFrom(excerpt{c.at, data})
	defer pages.Close()
	r := rowsOf{row: make([][]parquet.Value, len(s.part.leaves)), leaf: leaf, f: f, most: int(p.end - p.first)}
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = r.add(page)
			parquet.Release(page)
		}
		if err != nil {
			return err
		}
	}
	if r.flush(); r.count != r.most {
		return fmt.Errorf("%d rows where there should be %d: %w", r.count, r.most, store.ErrCorrupt)
	}
	return nil
}

// excerpt is some pages of a chunk as an io.ReaderAt over the file. The library reads them as if they were the
// first of the chunk.
type excerpt struct {
	at   int64 // position of the chunk in the file
	data []byte
}

// ReadAt implements io.ReaderAt.
func (e excerpt) ReadAt(b []byte, off int64) (int, error) {
	return bytes.NewReader(e.data).ReadAt(b, off-e.at)
}

// rowsOf assembles the values of a leaf to rows.
type rowsOf struct {
	row   [][]parquet.Value // by leaf: the current row
	leaf  *leafColumn
	f     func(i int, row [][]parquet.Value)
	count int
	most  int // expected number of rows; further rows are only counted
	batch [64]parquet.Value
	list  []parquet.Value // values of the current row, if the leaf is a list
}

// add adds the values of a page. Repetition level 0 begins a row.
func (r *rowsOf) add(page parquet.Page) error {
	values := page.Values()
	for {
		n, err := values.ReadValues(r.batch[:])
		for i, v := range r.batch[:n] {
			if r.leaf.leaf.MaxRepetitionLevel == 0 {
				r.yield(r.batch[i : i+1])
				continue
			}
			if v.RepetitionLevel() == 0 {
				r.flush()
			}
			// Values refer to the memory of their page, which is released.
			r.list = append(r.list, v.Clone()) // the row may go on in the next page
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// flush ends the current row of a list.
func (r *rowsOf) flush() {
	if len(r.list) > 0 {
		r.yield(r.list)
		r.list = r.list[:0]
	}
}

func (r *rowsOf) yield(values []parquet.Value) {
	if r.row[r.leaf.leaf.ColumnIndex] = values; r.count < r.most {
		r.f(r.count, r.row)
	}
	r.count++
}
