package source

import "slices"

// MaxValue is the most bytes that one value of any length can have: a file, a member of an archive, a record of a
// dataset.
const MaxValue = 1 << 30

// Values are the values of one sample, as bytes: numbers little endian in C order, text as
// UTF-8, images as the bytes of their files. A Values is used for one sample after the
// other, and keeps its memory. It serves one goroutine.
type Values struct {
	values [][]byte
	own    [][]byte
	// Scratch is memory that the samples of one source reuse. It is nil at first.
	Scratch any
}

// NewValues returns a Values for that many fields.
func NewValues(fields int) *Values {
	return &Values{values: make([][]byte, fields), own: make([][]byte, fields)}
}

// Get returns the value of a field. It is valid until the next sample is read.
func (v *Values) Get(field int) []byte { return v.values[field] }

// Clear forgets the values of the sample before, so that one that cannot be read whole has no
// others' values.
func (v *Values) Clear() { clear(v.values) }

// Len returns the number of fields.
func (v *Values) Len() int { return len(v.values) }

// Size returns the bytes of all values.
func (v *Values) Size() (n int64) {
	for _, b := range v.values {
		n += int64(len(b))
	}
	return n
}

// Borrow makes b, which must stay as it is, the value of a field.
func (v *Values) Borrow(field int, b []byte) { v.values[field] = b }

// Buffer returns memory that the value of a field may be appended to, for Keep.
func (v *Values) Buffer(field int) []byte { return v.own[field][:0] }

// Keep makes b, which began as Buffer, the value of a field.
func (v *Values) Keep(field int, b []byte) { v.values[field], v.own[field] = b, b }

// Make makes n bytes of unknown content the value of a field and returns them.
func (v *Values) Make(field, n int) []byte {
	v.own[field] = slices.Grow(v.own[field][:0], n)[:n]
	v.values[field] = v.own[field]
	return v.own[field]
}

// Tuple is the values of a sample that are in memory.
type Tuple [][]byte

// Read implements Data.
func (t Tuple) Read(v *Values) error {
	for i, b := range t {
		v.Borrow(i, b)
	}
	return nil
}
