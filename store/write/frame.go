package write

import "github.com/penstock/penstock/internal/layout"

// Frame describes the bytes around the rows in a column's files, where the files become files of another container
// without a copy. A nil Frame is the form of a .npy file: a header.
type Frame struct {
	Name  string                  // unique to this form: a build is resumed only with the same Frame
	Head  int64                   // bytes before the rows
	Index func(rows int64) []byte // the bytes before the rows of a file with that many rows
	Pad   int64                   // zeros after the rows fill up to a multiple of Pad bytes; 0 means none
}

// head returns the number of bytes before the rows.
func (f *Frame) head() int64 {
	if f == nil {
		return layout.HeaderBytes
	}
	return f.Head
}

// padding returns how many zeros follow that many bytes of rows.
func (f *Frame) padding(rowBytes int64) int64 {
	if f == nil || f.Pad == 0 {
		return 0
	}
	return (f.Pad - rowBytes%f.Pad) % f.Pad
}
