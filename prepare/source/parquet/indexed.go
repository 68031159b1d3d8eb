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

// indexed is a reader that finds a row without those before it. It reads columns piece by piece, each piece when the
// first of its values is needed, and holds their values until Close.
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

// stripe is a column in a row group.
type stripe struct {
	column *leafColumn
	file   vfs.Ranger
	size   int64 // of the file
	group  parquet.RowGroup
	meta   []format.ColumnChunk
	pieces []piece
}

// piece is rows of a stripe that are read together.
type piece struct {
	first, end int64 // rows of the group
	at, bytes  int64 // of the file; 0 for all pages of the leaves

	mu   sync.Mutex
	read *content // nil before the first read, and after one that failed
}

// content is the values of a piece, which are there when done is closed.
type content struct {
	done   chan struct{}
	values [][]byte
	errs   map[int]error // by row, of values that are bad
	err    error         // of the read
}

const (
	pieceBytes = 1 << 20 // pages that follow each other are read together up to this
	wideBytes  = 8 << 20 // in a larger piece, pages take memory for a while
	mostWide   = 3       // of these that are read at a time

	// leastRow is the average size of rows that are looked for one by one. Smaller ones are better read in their order.
	leastRow = 1 << 10
)

// newIndexed returns an indexed reader; nil if rows are small.
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
				group.columns = append(group.columns, stripe{c, file, p.Size(), g, p.Metadata().RowGroups[k].Columns, pieces})
			}
			x.groups, first = append(x.groups, group), group.end
		}
	}
	return x, nil
}

// piecesOf returns the pieces of a column in a row group: runs of pages if the file says where they are, and the whole
// otherwise. Pages of lists may begin within a row, and pages of dictionary words need the dictionary.
func piecesOf(c *leafColumn, file io.ReaderAt, p *parquet.File, group int) ([]piece, error) {
	g := &p.Metadata().RowGroups[group]
	whole := []piece{{end: g.NumRows}}
	if c.parts != nil || c.leaf.MaxRepetitionLevel > 0 {
		return whole, nil
	}
	chunk := &g.Columns[c.leaf.ColumnIndex]
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

// pagePieces joins pages to pieces; nil if the pages do not follow each other, or not in the order of rows.
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
	sample.Data = column.WithFiles(rowData{x, i}, x.paths, x.root, sample.File)
	return sample, nil
}

// SampleName implements source.Named.
func (x *indexed) SampleName(i int64) (string, error) {
	return x.place(i).Name, nil
}

// rowData is the Data of a row.
type rowData struct {
	indexed *indexed
	row     int64
}

// Read implements source.Data. All columns are fetched at the same time.
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

// ReadField implements source.Parted, for numbers.
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

// value returns the value of a field of a row.
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

// content returns the content of a piece, which is read once, however many ask for it.
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
	defer close(c.done)
	if c.err = x.fill(c, s, p); c.err != nil {
		p.mu.Lock()
		p.read = nil
		p.mu.Unlock()
	}
	return c
}

// fill reads a piece.
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

// chunk returns where a leaf of the stripe is.
func (s *stripe) chunk(leaf *leafColumn) chunk {
	i := leaf.leaf.ColumnIndex
	c, _ := s.group.ColumnChunks()[i].(*parquet.FileColumnChunk) // a file has no others
	m := &s.meta[i].MetaData
	at := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		at = m.DictionaryPageOffset
	}
	return chunk{c, at, min(m.TotalCompressedSize, s.size-at)}
}

// eachRow calls f with each row of a piece, which has the values of one leaf and is valid in f.
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
	r := rowsOf{row: make([][]parquet.Value, len(s.meta)), leaf: leaf, f: f, most: int(p.end - p.first)}
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

// excerpt is pages of a chunk, as if they were those that it begins with.
type excerpt struct {
	at   int64 // where the chunk begins
	data []byte
}

// ReadAt implements io.ReaderAt.
func (e excerpt) ReadAt(b []byte, off int64) (int, error) {
	return bytes.NewReader(e.data).ReadAt(b, off-e.at)
}

// rowsOf puts the values of a leaf together to rows.
type rowsOf struct {
	row   [][]parquet.Value // by leaf
	leaf  *leafColumn
	f     func(i int, row [][]parquet.Value)
	count int
	most  int // rows that there should be: more are counted alone
	batch [64]parquet.Value
	list  []parquet.Value // of the present row, if the leaf is of lists
}

// add takes the values of a page.
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

// flush ends a row of lists.
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
