package table

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/prepare/source/column"
)

// Rows of CSV are taken apart column by column: the places of all separators in a block are found first, many bytes
// at a time, so that where a cell begins does not wait for the one before it.

// splitter has the places of the separators of a block.
type splitter struct {
	ends                     []uint32 // of all cells
	commas, newlines, quotes []uint64 // bits of the text
}

// rowsAtOnce is how many rows are taken apart column by column: few enough that their text stays in the nearest caches.
const rowsAtOnce = 64

// split finds the cells of a text, which may have quotes. It returns the number of rows if each line is a row of that
// many cells, and otherwise 0.
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
			within := parity(s.quotes[i]) ^ inside
			inside = uint64(int64(within) >> 63)
			ends, newlines = ends&^within, newlines&^within
		}
		lines += bits.OnesCount64(newlines)
		s.add(64*i, ends)
	}
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

// add adds the places of the marked bits.
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

// blank reports whether a line of a table of one column is blank, which is no row.
func (s *splitter) blank(text string, row int) bool {
	begin := 0
	if row > 0 {
		begin = int(s.ends[row-1]) + 1
	}
	return text[begin] == '\n' || text[begin] == '\r' && text[begin+1] == '\n'
}

// parity returns, for each bit of x, whether the number of set bits up to it is odd. By it a separator inside of quotes
// is told from one outside.
func parity(x uint64) uint64 {
	for n := 1; n < 64; n *= 2 {
		x ^= x << n
	}
	return x
}

// inner returns the rows that have enough text around them for column.Cells, which reads beyond a cell.
func (s *splitter) inner(text string, columns, rows int) (first, end int) {
	for first = 1; first < rows && s.ends[first*columns-1] < column.CellMargin; first++ {
	}
	for end = rows; end > first && int(s.ends[end*columns-1])+column.CellMargin > len(text); end-- {
	}
	return first, max(first, end)
}

// quotedCell returns the content of the quoted cell at the start of text, and how many bytes the cell has.
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

// quotedEnd returns how many bytes the quoted cell at the start of text has, quotes included; 0 if it has no end.
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
