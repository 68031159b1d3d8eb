package table

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/prepare/source/column"
)

// Rows of CSV are taken apart column by column. The positions of all separators in a block are found first, many
// bytes at a time, so that the beginning of a cell does not depend on parsing the cell before it.
//
// splitter has the positions of the separators of a block.
type splitter struct {
	ends                     []uint32 // end of each cell, row after row
	commas, newlines, quotes []uint64 // a bit for each byte of the text
}

// rowsAtOnce is the number of rows that are taken apart column by column. It is small, so that their text stays in
// the nearest cache.
const rowsAtOnce = 64

// split finds the cells of a text, which may have quotes. It returns the number of rows if each line is a row of
// exactly that many cells, otherwise 0.
func (s *splitter) split(text string, quoted bool, comma byte, columns int) (rows int) {
	words := (len(text) + 63) / 64
	s.ends = s.ends[:0]
	for _, m := range []struct {
		marks *[]uint64
		c     byte
	}{{&s.commas, comma}, {&s.newlines, '\n'}, {&s.quotes, '"'}} {
		if m.c == '"' && !quoted {
			continue
		}
		*m.marks = slices.Grow((*m.marks)[:0], words)[:words]
		kernel.MarkBytes(*m.marks, text, m.c)
	}
	lines, inside := 0, uint64(0)
	for i, newlines := range s.newlines {
		ends := s.commas[i] | newlines
		if quoted {
			// inside carries the state of the last byte into the next 64: all ones within quotes.
			within := parity(s.quotes[i]) ^ inside
			inside = uint64(int64(within) >> 63)
			ends, newlines = ends&^within, newlines&^within
		}
		lines += bits.OnesCount64(newlines)
		s.add(64*i, ends)
	}
	// A row with another number of cells, or a last line without its newline.
	if len(s.ends) != lines*columns {
		return 0
	}
	for row := range lines {
		at := s.ends[(row+1)*columns-1]
		if text[at] != '\n' || columns == 1 && s.blank(text, row) {
			return 0
		}
	}
	return lines
}

// add adds the positions of the set bits in marks, the bits of the 64 bytes from first on.
func (s *splitter) add(first int, marks uint64) {
	n, count := len(s.ends), bits.OnesCount64(marks)
	s.ends = slices.Grow(s.ends, 64)
	ends := s.ends[n : n+64]
	for i := 0; i < count; i += 4 { // four at a time, as the number of them is hard to guess
		for k := range 4 {
			ends[i+k] = uint32(first + bits.TrailingZeros64(marks))
			marks &= marks - 1
		}
	}
	s.ends = s.ends[:n+count]
}

// blank reports whether a line is blank, which in a table of one column is no row.
func (s *splitter) blank(text string, row int) bool {
	begin := 0
	if row > 0 {
		begin = int(s.ends[row-1]) + 1
	}
	return text[begin] == '\n' || text[begin] == '\r' && text[begin+1] == '\n'
}

// parity returns, for each bit of x, whether the number of set bits up to and including it is odd. Applied to the
// bits of quotes, it says which bytes are inside of quotes.
func parity(x uint64) uint64 {
	for n := 1; n < 64; n *= 2 {
		x ^= x << n
	}
	return x
}

// inner returns the rows that have at least column.CellMargin bytes of text before and after them, as column.Cells
// reads beyond cells.
func (s *splitter) inner(text string, columns, rows int) (first, end int) {
	for first = 1; first < rows && s.ends[first*columns-1] < column.CellMargin; first++ {
	}
	for end = rows; end > first && int(s.ends[end*columns-1])+column.CellMargin > len(text); end-- {
	}
	return first, max(first, end)
}

// quotedCell returns the content of the quoted cell at the beginning of text, and the length of the cell in bytes.
func quotedCell(text string) (cell string, end int) {
	if end = quotedEnd(text); end == 0 {
		return "", 0
	}
	cell = text[1 : end-1]
	if strings.IndexByte(cell, '"') >= 0 {
		cell = strings.ReplaceAll(cell, `""`, `"`)
	}
	return cell, end
}

// quotedEnd returns the length of the quoted cell at the beginning of text, including its quotes; 0 if it has no
// end.
func quotedEnd(text string) int {
	for pos := 1; ; pos += 2 {
		i := strings.IndexByte(text[pos:], '"')
		if i < 0 {
			return 0
		}
		if pos += i; pos+1 == len(text) || text[pos+1] != '"' {
			return pos + 1
		}
		if pos+2 == len(text) {
			return 0
		}
	}
}
