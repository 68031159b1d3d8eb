package source

import (
	"iter"
	"strconv"
)

// Blocked is a Source that can give many samples at a time.
type Blocked interface {
	Source

	// Blocks yields the samples of Samples, in their order, in blocks. It is for a source all of whose fields have
	// a fixed size or are text. It returns nil where the source can only give one sample at a time.
	Blocks() iter.Seq2[Block, error]
}

// Block is samples that follow each other, of one split.
type Block interface {
	// Read fills rows with the samples of the block. It may run concurrently with Read of other Blocks.
	Read(rows *Rows) error
}

// Rows are the samples of a Block, read. A Rows is used for one Block after the other, and keeps its memory. It
// serves one goroutine.
type Rows struct {
	N      int      // samples, with those that are in Odd
	Split  string   // of all of them
	File   string   // path of the file that has all of them
	Prefix string   // of the names of all of them: a number follows it
	Values [][]byte // by field: the values of all samples that are not in Odd, one after the other
	Ends   [][]int  // by field of text, valid UTF-8: where each of them ends
	Odd    []Odd    // samples that are left to Data.Read, in order: a value is bad, or not like the others

	numbers []int64 // which end the names
	lent    []bool  // by field: Values are lent, and own is its memory
	own     [][]byte

	// Scratch is memory that the blocks of one source reuse. It is nil at first.
	Scratch any
}

// Odd is a sample that its Block did not read.
type Odd struct {
	At   int // its position in the block
	Data Data
}

// NewRows returns a Rows for that many fields.
func NewRows(fields int) *Rows {
	return &Rows{Values: make([][]byte, fields), Ends: make([][]int, fields), lent: make([]bool, fields),
		own: make([][]byte, fields)}
}

// Clear forgets all samples.
func (r *Rows) Clear() {
	clear(r.Odd)
	r.N, r.Split, r.File, r.Prefix, r.Odd, r.numbers = 0, "", "", "", r.Odd[:0], r.numbers[:0]
	for i := range r.Values {
		if r.lent[i] {
			r.Values[i], r.lent[i] = r.own[i], false
		}
		r.Values[i], r.Ends[i] = r.Values[i][:0], r.Ends[i][:0]
	}
}

// Lend uses values as the values of a field until Clear, without a copy. Nothing is written to them.
func (r *Rows) Lend(field int, values []byte) {
	if !r.lent[field] {
		r.own[field], r.lent[field] = r.Values[field], true
	}
	r.Values[field] = values
}

// AppendName appends the name of a sample to b.
func (r *Rows) AppendName(b []byte, i int) []byte {
	return r.AppendNumber(append(b, r.Prefix...), i)
}

// AppendNumber appends to b what follows Prefix in the name of a sample.
func (r *Rows) AppendNumber(b []byte, i int) []byte { return strconv.AppendInt(b, r.numbers[i], 10) }

// Add counts one more sample, whose name is Prefix and the number.
func (r *Rows) Add(number int64) {
	r.numbers = append(r.numbers, number)
	r.N++
}

// AddOdd counts one more sample, whose name is Prefix and the number, as one of Odd.
func (r *Rows) AddOdd(number int64, d Data) {
	r.Odd = append(r.Odd, Odd{r.N, d})
	r.Add(number)
}
