package parquet

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// A block has as many rows as blockBytes hold, and at most blockRows.
const (
	blockBytes = 256 << 10
	blockRows  = 1024
)

// block is consecutive rows of a file with all their values.
type block struct {
	first  int64  // number of the first row in its file
	prefix string // common part of the rows' names
	split  string // of the file
	file   string
	rows   int
	values [][]byte      // by field: the values of all rows, concatenated
	bad    map[int]int   // by row: the first field with a bad value
	errs   map[int]error // by row: the error of that value
}

// Read implements source.Block. Without bad rows, the values are not copied.
func (b *block) Read(rows *source.Rows) error {
	rows.File, rows.Split, rows.Prefix = b.file, b.split, b.prefix
	if len(b.bad) == 0 {
		copy(rows.Values, b.values)
	}
	for i := range b.rows {
		number := b.first + int64(i)
		field, bad := b.bad[i]
		if bad {
			rows.AddOdd(number, b.odd(i, field))
			continue
		}
		rows.Add(number)
		if len(b.bad) == 0 {
			continue
		}
		for k, v := range b.values {
			size := len(v) / b.rows
			rows.Values[k] = append(rows.Values[k], v[i*size:(i+1)*size]...)
		}
	}
	return nil
}

// odd returns the Data of a row with a bad value: the values of the fields before it, and the error.
func (b *block) odd(row, field int) source.Data {
	values := make(source.Tuple, len(b.values))
	for k, v := range b.values[:field] {
		size := len(v) / b.rows
		values[k] = v[row*size : (row+1)*size]
	}
	return source.Loaded{Tuple: values, Err: b.errs[row]}
}

// Blocks implements source.Blocked. Pages are decoded column by column straight into the values of the fields,
// without assembling rows. It returns nil if some column needs the general way.
func (s *reader) Blocks() iter.Seq2[source.Block, error] {
	if slices.ContainsFunc(s.columns, func(c *leafColumn) bool { return !c.blocked() }) {
		return nil
	}
	return func(yield func(source.Block, error) bool) {
		first := int64(0)
		for i, p := range s.parts {
			n, more, err := s.fileBlocks(i, p, yield)
			if err != nil {
				if len(s.parts) > 1 {
					err = fmt.Errorf("%s: %w", filepath.Base(s.files[i].Name()), err)
				}
				yield(nil, fmt.Errorf("source %s: row %d: %w", s.path, first+n, err))
			}
			if err != nil || !more {
				return
			}
			first += p.NumRows()
		}
	}
}

// fileBlocks yields the blocks of a file. It returns the number of rows in them, and whether the caller wants more.
func (s *reader) fileBlocks(file int, p *part, yield func(source.Block, error) bool) (done int64, more bool,
	err error) {
	prefix, split := "", ""
	if len(s.parts) > 1 {
		prefix, split = filepath.ToSlash(s.files[file].Name())+":", s.splits.Of[s.names[file]]
	}
	size := 0
	for _, f := range s.info.Fields {
		size += f.RecordBytes()
	}
	most := int64(min(max(blockBytes/size, 1), blockRows))
	for _, g := range p.RowGroups() {
		r := newGroupReader(s, p, g)
		for left := g.NumRows(); left > 0; {
			// Each block has memory of its own: several are under way at a time.
			b := &block{first: done, prefix: prefix, split: split, file: s.names[file], rows: int(min(left, most))}
			if err = r.fill(b); err != nil {
				break
			}
			done += int64(b.rows)
			left -= int64(b.rows)
			if !yield(b, nil) {
				return done, false, r.close()
			}
		}
		if err = cmp.Or(err, r.close()); err != nil {
			return done, false, err
		}
	}
	return done, true, nil
}

// groupReader reads the leaves of the fields in a row group. Pages of different leaves end at different rows, so
// each leaf has its own position.
type groupReader struct {
	fields []source.Field
	leaves []*leafReader
}

// newGroupReader returns a reader of a row group. A field of several leaves is filled leaf by leaf, each at its
// offset in the value.
func newGroupReader(s *reader, p *part, g parquet.RowGroup) *groupReader {
	r := &groupReader{fields: s.info.Fields}
	for k, c := range s.columns {
		parts := c.parts
		if parts == nil {
			parts = []*leafColumn{c}
		}
		for i, part := range parts {
			stride := c.field.RecordBytes()
			r.leaves = append(r.leaves, &leafReader{
				column: part, field: k, offset: i * stride / len(parts), stride: stride, size: c.field.DType.Size(),
				elems: tensor.Shape(c.field.Shape).Elems() / len(parts),
				chunk: g.ColumnChunks()[p.leaves[part.leaf.ColumnIndex]],
			})
		}
	}
	return r
}

// fill sets the values of b to the next b.rows rows of the group.
func (r *groupReader) fill(b *block) error {
	for _, f := range r.fields {
		b.values = append(b.values, make([]byte, b.rows*f.RecordBytes()))
	}
	for _, l := range r.leaves {
		if err := guardParquet(func() error { return l.fill(b) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *groupReader) close() (err error) {
	for _, l := range r.leaves {
		err = cmp.Or(err, guardParquet(l.close))
	}
	return err
}

// leafReader reads the values of a leaf page by page, and writes them to their places in a block.
type leafReader struct {
	column *leafColumn
	field  int // position of the field
	offset int // where the leaf's part begins in a value of the field, in bytes
	stride int // bytes of a value of the field
	elems  int // numbers of the leaf in a row
	size   int // bytes of a number in the field
	chunk  parquet.ColumnChunk

	pages parquet.Pages
	page  parquet.Page
	left  int // values of the page that are not taken yet

	// The values of the page that are not taken yet are, for a page of numbers without nulls, in plain: width bytes
	// each, or with a dictionary at the positions in index.
	plain []byte
	width int
	index []int32

	// For any other page, the library reads the values one by one.
	values parquet.ValueReader
	one    [1]parquet.Value
}

// fill takes the values of the rows of b. A block can end within a page and a page within a block, or even within a
// list.
func (l *leafReader) fill(b *block) error {
	out := b.values[l.field]
	for row, elem := 0, 0; row < b.rows; {
		at := row*l.stride + l.offset + elem*l.size
		switch {
		case l.left == 0:
			if err := l.turn(); err != nil {
				return err
			}
		case l.values != nil:
			if n, err := l.values.ReadValues(l.one[:]); n == 0 {
				return fmt.Errorf("column %s: %w", l.column.name, cmp.Or(err, store.ErrCorrupt))
			}
			l.left--
			v, err := l.column.number(l.one[0])
			// A bad value leaves zeros; the row is given out by its Data.
			if copy(out[at:at+l.stride-l.offset], v); err != nil {
				b.refuse(row, l.field, fmt.Errorf("column %s: %w", l.column.name, err))
			}
			row++
		case l.elems == 1:
			n := min(l.left, b.rows-row)
			l.take(out[at:], l.stride, n)
			row += n
		default:
			n := min(l.left, l.elems-elem)
			l.take(out[at:], l.size, n)
			if elem += n; elem == l.elems {
				row, elem = row+1, 0
			}
		}
	}
	return nil
}

// turn advances to the next page, and finds out how its values are read.
func (l *leafReader) turn() (err error) {
	if l.pages == nil {
		l.pages = l.chunk.Pages()
	}
	parquet.Release(l.page)
	if l.page, err = l.pages.ReadPage(); err == io.EOF {
		return fmt.Errorf("column %s ends before its rows do: %w", l.column.name, store.ErrCorrupt)
	} else if err != nil {
		return fmt.Errorf("column %s: %w", l.column.name, err)
	}
	l.left, l.plain, l.index, l.values = int(l.page.NumValues()), nil, nil, nil
	switch l.column.leaf.Node.Type().Kind() {
	case parquet.Int32, parquet.Float:
		l.width = 4
	case parquet.Int64, parquet.Double:
		l.width = 8
	default:
		l.width = 0
	}
	if l.width > 0 && l.page.NumNulls() == 0 {
		data := l.page.Data()
		// Indices and dictionary stay apart: the numbers are copied once, to their places in the block.
		if d := l.page.Dictionary(); d != nil {
			l.index, data = data.Int32()[:l.left], d.Page().Data()
		}
		l.plain, _ = data.Data()
		return nil
	}
	if l.column.leaf.MaxRepetitionLevel > 0 {
		return fmt.Errorf("column %s: a list with a null, where none was before: %w", l.column.name, store.ErrCorrupt)
	}
	l.values = l.page.Values()
	return nil
}

// take copies n numbers to out, at a distance of stride bytes.
func (l *leafReader) take(out []byte, stride, n int) {
	if l.index == nil && l.width == l.size && l.size == stride {
		copy(out, l.plain[:n*l.width])
	} else {
		l.takeEach(out, stride, n)
	}
	if l.left -= n; l.index != nil {
		l.index = l.index[n:]
	} else {
		l.plain = l.plain[n*l.width:]
	}
}

// takeEach copies numbers one by one, through the dictionary if the page has one. Parquet stores integers of 8 and
// 16 bits in 32 bits, and labels become int64, so sizes are converted.
func (l *leafReader) takeEach(out []byte, stride, n int) {
	unsigned := l.column.DType == tensor.Uint32
	for i := range n {
		k := i
		if l.index != nil {
			k = int(l.index[i])
		}
		switch to := out[i*stride:]; {
		case l.width == 4 && l.size == 4:
			binary.LittleEndian.PutUint32(to, binary.LittleEndian.Uint32(l.plain[4*k:]))
		case l.width == 8:
			binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(l.plain[8*k:]))
		case l.size == 8 && unsigned:
			binary.LittleEndian.PutUint64(to, uint64(binary.LittleEndian.Uint32(l.plain[4*k:])))
		case l.size == 8:
			binary.LittleEndian.PutUint64(to, uint64(int32(binary.LittleEndian.Uint32(l.plain[4*k:]))))
		default:
			copy(to[:l.size], l.plain[4*k:])
		}
	}
}

func (l *leafReader) close() error {
	parquet.Release(l.page)
	if l.page = nil; l.pages == nil {
		return nil
	}
	return l.pages.Close()
}

// refuse notes that a value of a row is bad. The first error of a row counts, as fields are read in order.
func (b *block) refuse(row, field int, err error) {
	if _, known := b.bad[row]; known {
		return
	}
	if b.bad == nil {
		b.bad, b.errs = make(map[int]int), make(map[int]error)
	}
	b.bad[row], b.errs[row] = field, err
}
