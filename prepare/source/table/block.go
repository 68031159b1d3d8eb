package table

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// blockBytes is the size of a block's text, unless one row is longer. It is a variable so that tests can make it
// small.
var blockBytes = 128 << 10

// block is consecutive rows of a file: text whose lines are rows, or rows that were parsed already.
type block struct {
	file   *tableFile
	text   string
	quoted bool  // text has cells in quotes, so a row may have several lines
	at     int64 // number of the line before text
	lines  int64
	rows   []tableRow
}

// Blocks implements source.Blocked. Blocks that the first pass has kept take the place of the blocks of text at the
// same position; the text between them is still read, to find where blocks begin. If all were kept, no file is
// opened.
func (t *table) Blocks() iter.Seq2[source.Block, error] {
	if !t.blocked() {
		return nil
	}
	if t.whole {
		return t.heldBlocks
	}
	return func(yield func(source.Block, error) bool) {
		held := t.held
		err := t.eachFile(func(file *tableFile) error {
			for {
				b, err := nextBlock(file)
				var next source.Block = b
				if len(held) > 0 && b != nil && held[0].is(b) {
					next, held = heldRead{held[0], t}, held[1:]
				}
				// The rows come before the error: a file may end in the middle of a block.
				if b != nil && !yield(next, nil) {
					return errStop
				}
				if err != nil {
					return err
				}
			}
		})
		if err != nil {
			yield(nil, fmt.Errorf("source %s: %w", t.path, err))
		}
	}
}

// blocked reports whether all fields have a fixed size or are text, so that rows can be read in blocks.
func (t *table) blocked() bool {
	return !slices.ContainsFunc(t.columns, func(c tableColumn) bool { return c.field.Ragged && c.typ.Kind != column.Text })
}

// nextBlock returns the next rows of a file, and the error after them; io.EOF at the end. If the lines are not
// complete rows on their own, such as a cell with a line end, rows are parsed here one by one.
func nextBlock(file *tableFile) (*block, error) {
	text, lines, err := file.rows.text().whole(blockBytes)
	if err != nil {
		return nil, err
	}
	b := &block{file: file, at: file.rows.text().at, lines: lines}
	if end, plain := file.rows.whole(text); end > 0 {
		if end < len(text) {
			text = text[:end]
			b.lines = int64(strings.Count(text, "\n"))
		}
		b.text, b.quoted = text, !plain
		file.rows.text().skip(text, b.lines)
		return b, nil
	}
	for end := b.at + lines; file.rows.text().at < end; {
		row := tableRow{file: file}
		if err = file.rows.next(&row); err != nil {
			break
		}
		row.file = file
		b.rows = append(b.rows, row)
	}
	return b, err
}

// blockReader converts the rows of blocks to values, one row after the other. It is the Scratch of a source.Rows.
type blockReader struct {
	table *table
	cells []column.Cell
	set   func(i int, name string, c column.Cell)
	begun []int // by field: bytes of its values before the row
	late  error // of a column of the row that was not in the first pass
}

func newBlockReader(t *table) *blockReader {
	r := &blockReader{table: t, cells: make([]column.Cell, t.width), begun: make([]int, len(t.columns))}
	r.set = t.setter(r.cells, &r.late)
	return r
}

// Read implements source.Block.
func (b *block) Read(rows *source.Rows) error {
	r, ok := rows.Scratch.(*blockReader)
	if !ok {
		r = newBlockReader(b.file.table)
		rows.Scratch = r
	}
	rows.File, rows.Split, rows.Prefix = b.file.name, b.file.table.splits.Of[b.file.name], b.file.prefix
	for row := range b.each {
		r.add(rows, row)
	}
	return nil
}

// each yields the rows of the block. A row is valid until the next row.
func (b *block) each(yield func(*tableRow) bool) {
	for i := range b.rows {
		if !yield(&b.rows[i]) {
			return
		}
	}
	row, at := &tableRow{}, b.at
	if b.quoted {
		b.eachQuoted(row, yield)
		return
	}
	for line := range strings.Lines(b.text) {
		at++
		if b.file.rows.row(line, at, row) {
			row.file = b.file
			if !yield(row) {
				return
			}
		}
	}
}

// eachQuoted is each for text with cells in quotes.
func (b *block) eachQuoted(row *tableRow, yield func(*tableRow) bool) {
	rows := b.file.rows.(*csvRows).part(b.text, b.at)
	for {
		err := rows.next(row)
		if err == io.EOF {
			return
		}
		if err != nil {
			panic("table: rows that were found whole are not: " + err.Error())
		}
		if row.file = b.file; !yield(row) {
			return
		}
	}
}

// first returns the first row, nil if the block has no rows.
func (b *block) first() *tableRow {
	for row := range b.each {
		return row
	}
	return nil
}

// count returns the number of rows in the block, without parsing cells.
func (b *block) count() int64 {
	n, at := int64(len(b.rows)), b.at
	if b.quoted {
		for range b.each {
			n++
		}
		return n
	}
	for line := range strings.Lines(b.text) {
		at++
		// otherwise the line may be blank
		if c := line[0]; c > ' ' && c < utf8.RuneSelf || b.file.rows.row(line, at, new(tableRow)) {
			n++
		}
	}
	return n
}

// add adds a row to rows. If a value is bad, the values of the row are removed again, and the row is left to its
// Data, which returns the error.
func (r *blockReader) add(rows *source.Rows, row *tableRow) {
	for i := range r.begun { // the fields that folders name follow the fields of columns
		r.begun[i] = len(rows.Values[i])
	}
	if err := r.values(rows, row); err == nil {
		rows.Add(row.at)
		for i := range r.table.columns {
			if r.table.columns[i].typ.Kind == column.Text {
				rows.Ends[i] = append(rows.Ends[i], len(rows.Values[i]))
			}
		}
		return
	}
	for i, n := range r.begun {
		// Some fields of the row may have been appended before the bad one.
		rows.Values[i] = rows.Values[i][:n]
	}
	bad := *row
	rows.AddOdd(row.at, &bad)
}

// values appends the values of a row to rows.
func (r *blockReader) values(rows *source.Rows, row *tableRow) (err error) {
	clear(r.cells)
	r.late = nil
	if err := cmp.Or(r.table.format.each(row, r.set), r.late); err != nil {
		return err
	}
	cells := r.cells
	for i := range r.table.columns {
		c := &r.table.columns[i]
		if rows.Values[i], err = c.append(rows.Values[i], cells[:len(c.from)]); err != nil {
			return err
		}
		cells = cells[len(c.from):]
	}
	return nil
}

// append appends the value of a row's cells for a field of fixed size or of text.
func (c *tableColumn) append(b []byte, cells []column.Cell) ([]byte, error) {
	if !c.concat && c.typ.Kind == column.Text {
		if !utf8.ValidString(cells[0].Text) {
			return b, errNotText
		}
		return append(b, cells[0].Text...), nil
	}
	if !c.concat {
		return c.typ.Append(b, cells[0])
	}
	for i := range cells {
		var err error
		if b, err = c.typ.AppendOne(b, cells[i]); err != nil {
			return b, err
		}
	}
	return b, nil
}

// errNotText marks a row as bad. The row is read again on its own, which gives a better error.
var errNotText = errors.New("a cell is not UTF-8")

// heldRead is a heldBlock as a source.Block, with the final types of the table.
type heldRead struct {
	*heldBlock
	table *table
}

// Read implements source.Block.
func (r heldRead) Read(rows *source.Rows) error {
	rows.File, rows.Split = r.name, r.table.splits.Of[r.name]
	for k := range r.types {
		if err := r.values(rows, k); err != nil {
			return err
		}
	}
	return r.heldBlock.Read(rows)
}

// values gives the kept values of column k to its field. Values of the field's type are lent without a copy, names
// of classes become numbers, and integers become floats, where the type has changed after the block.
func (r heldRead) values(rows *source.Rows, k int) error {
	from, typ, values := &r.types[k], &r.table.columns[k].typ, r.heldBlock.values[k]
	switch {
	case from.Kind == column.Text && typ.HasClasses():
		return r.classes(rows, k)
	case from.Kind == column.Text:
		rows.Ends[k] = append(rows.Ends[k], r.ends[k]...)
		rows.Lend(k, values)
	case from.DType == typ.DType:
		rows.Lend(k, values)
	default:
		rows.Values[k] = appendFloats(rows.Values[k], values, typ.DType)
	}
	return nil
}

// classes appends the class numbers of the names in column k.
func (r heldRead) classes(rows *source.Rows, k int) (err error) {
	begin := 0
	for _, end := range r.ends[k] {
		name := r.heldBlock.values[k][begin:end]
		if rows.Values[k], err = r.table.columns[k].typ.AppendClass(rows.Values[k], name); err != nil {
			return err // all names were seen in the first pass
		}
		begin = end
	}
	return nil
}

// appendFloats appends integers of 64 bits as floats.
func appendFloats(b, whole []byte, to tensor.DType) []byte {
	for ; len(whole) > 0; whole = whole[8:] {
		n := int64(binary.LittleEndian.Uint64(whole))
		if to == tensor.Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(n)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
		}
	}
	return b
}

// fits reports whether the values have the types of the fields, or can be converted to them exactly. An integer -0
// cannot: as int64 it has lost its sign.
func (h *heldBlock) fits(columns []tableColumn) bool {
	if len(columns) != len(h.types) {
		return false
	}
	for k := range columns {
		c, have := &columns[k], &h.types[k]
		if have.Kind == column.Text && !c.concat {
			if c.typ.Kind != column.Text && (!c.typ.HasClasses() || h.empty[k]) {
				return false
			}
			continue
		}
		if c.concat || c.typ.HasClasses() {
			return false
		}
		whole := have.Kind == column.Numbers && have.DType == tensor.Int64 && have.Shape == nil
		float := column.Type{DType: tensor.Float32}
		wide := column.Type{DType: tensor.Float64}
		if !c.typ.Same(have) && !(whole && !h.minusZero[k] && (c.typ.Same(&float) || c.typ.Same(&wide))) {
			return false
		}
	}
	return true
}

// is reports whether the kept values are the rows of b.
func (h *heldBlock) is(b *block) bool { return h.name == b.file.name && h.at == b.at && b.rows == nil }

// heldBlocks is Blocks for a table all of whose blocks were kept.
func (t *table) heldBlocks(yield func(source.Block, error) bool) {
	for _, h := range t.held {
		if !yield(heldRead{h, t}, nil) {
			return
		}
	}
}
