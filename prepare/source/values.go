package source

import "slices"

// MaxValue is the most bytes that a value of any length can have: a file, a member of an archive, a record of a
// dataset.
const MaxValue = 1 << 30

// Values holds the values of one sample as bytes: numbers little endian in C order, text as UTF-8, images as the
// bytes of their files. A Values is reused for sample after sample and keeps its memory. It serves one goroutine.
//
// A value is either borrowed memory (Borrow) or memory of this Values (Make, or Buffer and Keep). own keeps the
// memory of a field while a borrowed value takes its place, so the next sample reuses it.
type Values struct {
	values [][]byte
	own    [][]byte
	// Scratch is memory that the samples of one source reuse. It is nil at first.
	Scratch any
}

// NewValues returns a Values with the given number of fields.
func NewValues(fields int) *Values {
	return &Values{values: make([][]byte, fields), own: make([][]byte, fields)}
}

// Get returns the value of a field. It is valid until the next sample is read into v.
func (v *Values) Get(field int) []byte { return v.values[field] }

// Clear removes the values of the previous sample, so that a sample that fails halfway does not show values of
// another sample.
func (v *Values) Clear() { clear(v.values) }

func (v *Values) Len() int { return len(v.values) }

// Size returns the total size of all values in bytes.
func (v *Values) Size() (n int64) {
	for _, b := range v.values {
		n += int64(len(b))
	}
	return n
}

// Borrow makes b the value of a field without a copy. Nobody may change b while v holds it.
func (v *Values) Borrow(field int, b []byte) { v.values[field] = b }

// Buffer returns empty memory of the field, to append a value to and give to Keep.
func (v *Values) Buffer(field int) []byte { return v.own[field][:0] }

// Keep makes b, which was appended to Buffer, the value of a field, and keeps its memory for the next sample.
func (v *Values) Keep(field int, b []byte) { v.values[field], v.own[field] = b, b }

// Make makes n uninitialized bytes the value of a field and returns them.
func (v *Values) Make(field, n int) []byte {
	v.own[field] = slices.Grow(v.own[field][:0], n)[:n]
	v.values[field] = v.own[field]
	return v.own[field]
}

// Tuple is Data in memory: the values of one sample, by field.
type Tuple [][]byte

// Read implements Data.
func (t Tuple) Read(v *Values) error {
	for i, b := range t {
		v.Borrow(i, b)
	}
	return nil
}
