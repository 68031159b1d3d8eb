package table

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// agreement is the state that the goroutines of the first pass share: the types of columns according to the cells
// examined so far, and the values that are kept for them. Types only become wider, so kept values of a narrower
// type are found at the end (fits).
type agreement struct {
	mu      sync.Mutex
	guesses []column.Guess
	types   []column.Type // of kind Text for columns whose values have no fixed size
	blocks  map[int64]*heldBlock
	left    int64 // bytes that further blocks may take

	blocksRead int64 // number of blocks of the table, set after the pass
}

// heldBytes limits the memory of kept values, in bytes. The rest of a larger table is parsed twice.
const heldBytes = 256 << 20

// begun returns the current types; nil if no types are known yet.
func (a *agreement) begun() []column.Type {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.types
}

// agree adds the guesses of a goroutine to the shared guesses, and returns the types of all columns. If a column
// needs rows to be read one by one, no values are kept any more.
func (a *agreement) agree(s *tableScan) []column.Type {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.guesses == nil {
		a.guesses = make([]column.Guess, len(s.columns))
	}
	types := make([]column.Type, len(s.columns))
	for k, c := range s.columns {
		g := &a.guesses[k]
		g.Merge(&c.guess)
		if types[k] = g.Result(c.name); !types[k].Fixed(g) {
			// A ragged column, or one of images: no block has room for it.
			if !types[k].Words(g) {
				a.blocks, a.left = nil, 0 // rows are read one by one
			}
			types[k] = column.Type{Kind: column.Text}
		}
	}
	a.types = types
	return types
}

// wants reports whether there is room for more blocks.
func (a *agreement) wants() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left > 0
}

// hold keeps the values of a block if there is room. The first block that does not fit ends keeping.
func (a *agreement) hold(b scanBlock, r *typedReader) {
	size := r.bytes()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blocks == nil || size > a.left {
		a.left = 0
		return
	}
	a.left -= size
	a.blocks[b.number] = r.held(b.block)
}

// look examines a block and keeps its values if possible. It returns the number of rows. The block is parsed once
// if its columns already have types and the block agrees; otherwise it is examined cell by cell, and parsed again
// for its values if they are wanted.
//
//	no types yet                      examine; agree; parse with these types; keep the values if all fit
//	the block has the agreed types    parse values, which tells the same as examining; agree; keep them
//	the block changes a type          the same, and then parse again with the new types; keep them if all fit
//	some row is not plain             examine row by row; keep nothing
func (a *agreement) look(r *typedReader, s *tableScan, b scanBlock) (rows int64) {
	types, done := a.begun(), false
	if types != nil && r.knows(s, b) {
		r.begin(types, s, b.block)
		// The types come from other blocks. What the cells of this block tell is added to the scan below.
		if done = r.read(b.block); done {
			r.enter(s, b.number)
			rows = int64(r.rows)
		}
	}
	if !done {
		rows = s.look(b.file.table.format, b)
	}
	if !r.knows(s, b) {
		return rows
	}
	// The block itself may have changed the types: its values count only if they have not.
	agreed := a.agree(s)
	if done && !r.odd && sameTypes(types, agreed) || a.wants() && r.again(agreed, s, b) {
		a.hold(b, r)
	}
	return rows
}

// knows reports whether the scan and the file of a block have the columns of the table in the same order, and the
// block is text.
func (r *typedReader) knows(s *tableScan, b scanBlock) bool {
	order := b.file.table.order
	return b.rows == nil && s.names(order) && (b.file.header == nil || slices.Equal(b.file.header, order))
}

// again parses a block whose cells a scan has examined, and reports whether all values have these types.
func (r *typedReader) again(types []column.Type, s *tableScan, b scanBlock) bool {
	r.begin(types, s, b.block)
	return r.read(b.block) && !r.odd
}

// sameTypes reports whether values of both lists of types are the same.
func sameTypes(a, b []column.Type) bool {
	for k := range a {
		if !a[k].Same(&b[k]) {
			return false
		}
	}
	return len(a) == len(b)
}

// begin prepares the reader for a block of these types, and divides its memory among the columns. found is the scan
// whose knowledge of columns decides which cells need not be examined.
func (r *typedReader) begin(types []column.Type, found *tableScan, b *block) {
	if len(r.columns) != len(types) {
		r.columns = make([]typedColumn, len(types))
	}
	size := 0
	for k := range types {
		size += sizeOf(&types[k])
	}
	r.most = mostRows(b, size)
	total := size*r.most + valueBytes*len(types) // each column begins at a multiple of valueBytes
	if total > cap(r.memory) {
		r.memory = make([]byte, total)
	}
	memory := r.memory[:total]
	for k := range types {
		c := &r.columns[k]
		c.typ, c.size, c.traits, c.some, c.minusZero = types[k], sizeOf(&types[k]), 0, false, false
		n := (c.size*r.most + valueBytes - 1) / valueBytes * valueBytes
		// The capacity ends with the column's part of the memory, so that its values never reach the part of the
		// next column.
		c.values, memory = memory[:0:n], memory[n:]
		if c.text, c.empty = c.size == 0, false; c.text {
			c.values, c.ends, c.known = c.words[:0], c.ends[:0], found.columns[k].knowsText
		}
		single := c.typ.Shape == nil && !c.typ.Ragged && !c.typ.HasClasses() &&
			(c.typ.DType == tensor.Int64 || c.typ.DType == tensor.Float32 || c.typ.DType == tensor.Float64)
		s := found.columns[k]
		if c.quick = single && s.guess.KnowsPlain(); s.classes != nil {
			c.label = true
			clear(c.classes[:])
		}
	}
	r.cells, r.rows, r.lines, r.spread, r.odd = r.cells[:0], 0, r.lines[:0], false, false
}

// valueBytes is the size of the largest number, to which the values of a column are aligned.
const valueBytes = 8

// mostRows returns the most rows of size bytes that the text of a block can have. A value takes at least one
// character and becomes at most eight bytes. The number of lines may be larger, as lines can be blank.
func mostRows(b *block, size int) int {
	return int(min(b.lines, int64(valueBytes*(len(b.text)+1)/max(size, 1)+1)))
}

// read parses the text of a block. It returns false if a row is unlike the first rows; the block is then examined
// row by row. For CSV, the rows between the first and the last rows are parsed column by column, and only the
// first and last rows line by line, as column.Cells reads beyond cells.
func (r *typedReader) read(b *block) bool {
	at, comma := b.at, b.file.rows.separator()
	first, last := 0, 0
	if comma != 0 {
		rows := r.cut.split(b.text, b.quoted, comma, len(r.columns))
		first, last = r.cut.inner(b.text, len(r.columns), min(r.most, rows))
	}
	for text := b.text; text != ""; {
		if r.rows == first && first < last {
			if !r.takeRows(b.text, comma, first, last) {
				return false
			}
			at, text = r.countLines(b, at, first, last)
			continue
		}
		at++
		if end := lineEnd(text); end > 0 {
			text = text[end:]
			r.spread = true
			continue
		}
		if r.rows == r.most {
			return false
		}
		end := b.file.table.format.typed(r, b.file, text)
		if end == 0 {
			return false
		}
		r.lines = append(r.lines, at)
		r.rows++
		if b.quoted {
			if more := int64(strings.Count(text[:end-1], "\n")); more > 0 {
				at, r.spread = at+more, true
			}
		}
		text = text[end:]
	}
	r.finishTexts(b)
	return true
}

// countLines notes the line numbers of the rows that takeRows has parsed, after line at. It returns the number of
// their last line, and the text after it.
func (r *typedReader) countLines(b *block, at int64, first, last int) (int64, string) {
	columns := len(r.columns)
	for row := first; row < last; row++ {
		at++
		r.lines = append(r.lines, at)
		if b.quoted {
			begin, end := r.cut.ends[row*columns-1]+1, r.cut.ends[(row+1)*columns-1]
			if more := int64(strings.Count(b.text[begin:end], "\n")); more > 0 {
				at, r.spread = at+more, true
			}
		}
	}
	return at, b.text[r.cut.ends[last*columns-1]+1:]
}

// finishTexts keeps the memory of texts for the next block, and marks the block as odd if it is not UTF-8.
func (r *typedReader) finishTexts(b *block) {
	texts := false
	for k := range r.columns {
		if c := &r.columns[k]; c.text {
			texts, c.words = true, c.values
		}
	}
	if texts && !utf8.ValidString(b.text) {
		r.odd = true
	}
}

// enter adds the properties of a block's cells to a scan.
func (r *typedReader) enter(s *tableScan, number int64) {
	for k := range r.columns {
		c, found := &r.columns[k], s.columns[k]
		if c.some {
			found.guess.AddPlain(c.traits)
		}
		if !c.label {
			continue
		}
		for n, is := range c.classes {
			if is && len(found.classes) <= column.MaxClasses {
				found.classes[strconv.Itoa(n)] = true
			}
		}
	}
	for i := range r.cells {
		c := &r.cells[i]
		s.add(place{number, c.row, int64(c.column)}, s.columns[c.column].name, c.cell)
	}
}

// bytes returns the memory that the values of the block take.
func (r *typedReader) bytes() int64 {
	n := 8*len(r.lines) + cap(r.memory)
	for k := range r.columns {
		if c := &r.columns[k]; c.text {
			n += len(c.values) + 8*len(c.ends)
		}
	}
	return int64(n)
}

// held returns the values of block b, and gives the reader's memory away with them. Texts are copied, as their
// memory is reused.
func (r *typedReader) held(b *block) *heldBlock {
	h := &heldBlock{name: b.file.name, prefix: b.file.prefix, at: b.at, rows: r.rows}
	if r.spread {
		h.lines = append(h.lines, r.lines...)
	}
	for k := range r.columns {
		c := &r.columns[k]
		values, ends := c.values, []int(nil)
		if c.text {
			values, ends = slices.Clone(c.values), slices.Clone(c.ends)
		}
		h.types, h.values, h.ends = append(h.types, c.typ), append(h.values, values), append(h.ends, ends)
		h.minusZero, h.empty = append(h.minusZero, c.minusZero), append(h.empty, c.empty)
	}
	r.memory = nil
	return h
}

// hold keeps the blocks of the first pass whose values are values of the fields, so that their rows are not parsed
// again.
func (t *table) hold(a *agreement) {
	if !t.blocked() {
		return // rows are read one by one
	}
	for _, number := range slices.Sorted(maps.Keys(a.blocks)) {
		if h := a.blocks[number]; h.fits(t.columns) {
			t.held = append(t.held, h)
		}
	}
	t.whole = int64(len(t.held)) == a.blocksRead
}
