package table

import (
	"encoding/binary"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// heldBlock is the values of a block from the first pass. It is used if they turn out to be values of the final
// types.
type heldBlock struct {
	name, prefix string // name of the file, and what names of its rows begin with
	at           int64  // number of the line before the first row
	rows         int
	lines        []int64 // line number of each row; nil if rows are on consecutive lines
	types        []column.Type
	values       [][]byte // by column
	ends         [][]int  // by column of texts: the end of each value
	empty        []bool   // by column of texts: some cell is missing
	minusZero    []bool   // by column: it has an integer -0, which only floats can store
}

// Read implements source.Block.
func (h *heldBlock) Read(rows *source.Rows) error {
	rows.Prefix = h.prefix
	for i := range h.rows {
		line := h.at + int64(i) + 1
		if h.lines != nil {
			line = h.lines[i]
		}
		rows.Add(line)
	}
	return nil
}

// typedReader parses blocks into values of the types that columns have so far, and collects the cells that a scan
// has to know. It serves one goroutine and keeps its memory.
type typedReader struct {
	columns []typedColumn
	cut     splitter
	cells   []scanCell // cells of the block that are no plain numbers
	rows    int
	most    int // rows that fit in memory
	lines   []int64
	spread  bool   // rows are not on consecutive lines
	odd     bool   // some value does not have the type of its column, so the values are useless
	memory  []byte // of the values; nil after a heldBlock has taken it
}

// typedColumn is a column of a typedReader.
type typedColumn struct {
	typ       column.Type
	quick     bool // plain numbers need no scanCell, see Guess.KnowsPlain
	size      int
	values    []byte
	traits    column.PlainTraits
	some      bool // traits has plain numbers
	minusZero bool
	text      bool // values are the texts of cells: of a text column, or names of classes
	ends      []int
	words     []byte // memory for values of texts
	empty     bool
	known     func(column.Cell) bool // reports whether a cell tells nothing new about a column of texts
	label     bool                   // plain numbers below smallClasses are noted in classes
	classes   [smallClasses]bool
}

// smallClasses is more classes than most labels of numbers have. They are noted in an array; larger ones go to the
// map of the scan.
const smallClasses = 1024

// scanCell is a cell that is passed on to a scan.
type scanCell struct {
	row    int64
	column int
	cell   column.Cell
}

// sizeOf returns the bytes of a value; 0 for texts.
func sizeOf(t *column.Type) int {
	if t.Kind == column.Text {
		return 0
	}
	return t.DType.Size() * tensor.Shape(t.Shape).Elems()
}

// lineEnd returns the length of the line end at the beginning of text; 0 if the text does not begin with a line
// end. A CR at the end of the text is a line end.
func lineEnd(text string) int {
	switch {
	case text[0] == '\n', text == "\r":
		return 1
	case strings.HasPrefix(text, "\r\n"):
		return 2
	}
	return 0
}

// rowEnd returns the position after the line end at pos; 0 if the line does not end there.
func rowEnd(text string, pos int) int {
	if pos == len(text) {
		return pos
	}
	if n := lineEnd(text[pos:]); n > 0 {
		return pos + n
	}
	return 0
}

// plain parses the plain number at the beginning of text as the next cell of column k, which must be followed by
// ends. It returns the length of the number; 0 if the text does not begin with a plain number.
func (r *typedReader) plain(k int, text string, ends byte) int {
	c := &r.columns[k]
	if !c.quick {
		return 0
	}
	p, end := column.TakePlain(text)
	if end == 0 || text[end] != ends && (ends != '\n' || text[end] != '\r' || text[end+1] != '\n') {
		return 0
	}
	if c.label {
		n, ok := p.Small(smallClasses)
		if !ok {
			return 0
		}
		c.classes[n] = true
	}
	n := len(c.values)
	c.values = c.values[:n+c.size]
	if !p.Put(c.values[n:], c.typ.DType) {
		if c.typ.DType == tensor.Int64 {
			r.odd = true
		} else if _, err := c.typ.Append(c.values[:n], column.Cell{Text: text[:end]}); err != nil {
			r.odd = true
		}
	}
	c.traits |= p.Traits
	c.some = true
	return end
}

// other adds a cell that is not a plain number as the next cell of column k, in the given row of the block.
func (r *typedReader) other(k, row int, cell column.Cell) {
	c := &r.columns[k]
	if c.text {
		c.values = append(c.values, cell.Text...)
		c.ends = append(c.ends, len(c.values))
		c.empty = c.empty || cell.Missing()
		if c.known(cell) {
			return
		}
	}
	r.cells = append(r.cells, scanCell{row: int64(row), column: k, cell: cell})
	if c.size == 0 {
		return
	}
	// The values of an odd block are not used, but their length must grow with the rows.
	if r.odd {
		c.values = c.values[:len(c.values)+c.size]
		return
	}
	n := len(c.values)
	b, err := c.typ.Append(c.values, cell)
	if err != nil || len(b) != n+c.size {
		r.odd = true
	}
	c.values = c.values[:n+c.size]
	if word := column.Trimmed(cell.Text); word != "" && word[0] == '-' && strings.Trim(word[1:], "0") == "" {
		c.minusZero = true
	}
}

// takeRows parses the rows [first, end) of a text whose separators were found. It returns false if a cell has text
// after its closing quote.
func (r *typedReader) takeRows(text string, comma byte, first, end int) bool {
	columns := len(r.columns)
	for ; first < end; first += rowsAtOnce {
		n := min(rowsAtOnce, end-first)
		for k := range r.columns {
			cells := column.Cells{Text: text, Ends: r.cut.ends[first*columns+k-1 : (first+n-1)*columns+k+1], Step: columns}
			ends := comma
			if k == columns-1 {
				ends = '\n'
			}
			if !r.takeColumn(k, n, &cells, ends) {
				return false
			}
		}
		r.rows += n
	}
	return true
}

// takeColumn parses the cells of column k in the next n rows.
func (r *typedReader) takeColumn(k, n int, cells *column.Cells, ends byte) bool {
	c := &r.columns[k]
	for row := 0; ; row++ {
		if c.quick {
			row = c.takePlain(cells, row, n)
		}
		if row == n {
			return true
		}
		begin, end := cells.At(row)
		if r.plain(k, cells.Text[begin:], ends) > 0 {
			continue
		}
		text := cells.Text[begin:end]
		if ends == '\n' {
			text = strings.TrimSuffix(text, "\r")
		}
		if text != "" && text[0] == '"' {
			cell, size := quotedCell(text)
			if size != len(text) {
				return false
			}
			text = cell
		}
		r.other(k, r.rows+row, column.Cell{Text: text})
	}
}

// takePlain parses cells that are plain numbers, from row on. It returns the first row with another cell, or n.
func (c *typedColumn) takePlain(cells *column.Cells, row, n int) int {
	if c.label {
		return c.takeLabels(cells, row, n)
	}
	values, next, traits := cells.AppendPlain(c.values, row, n, c.typ.DType)
	if c.values = values; next > row {
		c.traits |= traits
		c.some = true
	}
	return next
}

// takeLabels is takePlain for class numbers, which it notes. It stops at a number that is not small.
func (c *typedColumn) takeLabels(cells *column.Cells, row, n int) int {
	if c.typ.DType != tensor.Int64 {
		return row
	}
	for ; row < n; row++ {
		had := len(c.values)
		values, next, traits := cells.AppendPlain(c.values, row, row+1, tensor.Int64)
		if next == row {
			break
		}
		class := binary.LittleEndian.Uint64(values[had:])
		if class >= smallClasses {
			break
		}
		c.classes[class], c.values, c.some = true, values, true
		c.traits |= traits
	}
	return row
}
