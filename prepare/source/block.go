package source

import (
	"iter"
	"strconv"
)

// Blocked is a Source that can read many samples in one call. For rows of a few numbers, a Sample, a name and a
// virtual call for each row would cost more than the parsing.
type Blocked interface {
	Source

	// Blocks yields the samples of Samples in the same order, grouped in blocks. It returns nil if the source can
	// only give one sample at a time; only sources whose fields all have a fixed size or are text can do better.
	Blocks() iter.Seq2[Block, error]
}

// Block is a run of consecutive samples of one split. Like Data, it is cheap until Read, which a worker calls.
type Block interface {
	// Read fills rows with the samples of the block. It may run concurrently with Read of other blocks.
	Read(rows *Rows) error
}

// Rows holds the samples of one Block after Read, column by column. A Rows is reused for block after block and
// keeps its memory. It serves one goroutine.
type Rows struct {
	N      int      // number of samples, including the samples in Odd
	Split  string   // split of all samples
	File   string   // path of the file that has all samples
	Prefix string   // common part of all names; the name of a sample is Prefix and a number
	Values [][]byte // by field: the values of all samples that are not in Odd, concatenated
	Ends   [][]int  // by field of valid UTF-8 text: the end of each text in Values
	Odd    []Odd    // samples, in order, that Data.Read has to read: a value is bad or unlike the values of the other samples

	numbers []int64 // by sample: the number at the end of the name
	lent    []bool  // by field: Values[field] is the caller's memory, and own[field] keeps the memory of this Rows
	own     [][]byte

	// Scratch is memory that the blocks of one source reuse. It is nil at first.
	Scratch any
}

// Odd is a sample that its Block left to Data.Read, so that the fast loop of the block needs no error handling of
// its own.
type Odd struct {
	At   int // position in the block
	Data Data
}

// NewRows returns an empty Rows with the given number of fields.
func NewRows(fields int) *Rows {
	return &Rows{Values: make([][]byte, fields), Ends: make([][]int, fields), lent: make([]bool, fields),
		own: make([][]byte, fields)}
}

// Clear removes all samples and ends every Lend. The memory is kept for the next block.
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

// Lend makes values the values of a field without a copy, until Clear. The caller must not change values before
// that, and Rows never writes to them: the memory may be a mapped file or belong to another block.
func (r *Rows) Lend(field int, values []byte) {
	if !r.lent[field] {
		r.own[field], r.lent[field] = r.Values[field], true
	}
	r.Values[field] = values
}

// AppendName appends the name of sample i to b.
func (r *Rows) AppendName(b []byte, i int) []byte {
	return r.AppendNumber(append(b, r.Prefix...), i)
}

// AppendNumber appends to b the number that follows Prefix in the name of sample i.
func (r *Rows) AppendNumber(b []byte, i int) []byte { return strconv.AppendInt(b, r.numbers[i], 10) }

// Add appends a sample with the name Prefix and number. The caller appends its values.
func (r *Rows) Add(number int64) {
	r.numbers = append(r.numbers, number)
	r.N++
}

// AddOdd appends a sample with the name Prefix and number, and leaves its values to d. Values get nothing for it.
func (r *Rows) AddOdd(number int64, d Data) {
	r.Odd = append(r.Odd, Odd{r.N, d})
	r.Add(number)
}
