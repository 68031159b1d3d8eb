package write

import "github.com/penstock/penstock/internal/layout"

// Frame writes the bytes around the rows in the files of a column which become files of a container of another kind as
// they are. nil is the frame of a .npy file: a header.
type Frame struct {
	Name  string                  // differs between frames that differ: a build is continued with the same one
	Head  int64                   // bytes before the rows
	Index func(rows int64) []byte // which these are, in a file of that many rows
	Pad   int64                   // zeros follow the rows up to a multiple of as many bytes, unless it is 0
}

// head returns the number of bytes before the rows.
func (f *Frame) head() int64 {
	if f == nil {
		return layout.HeaderBytes
	}
	return f.Head
}

// padding returns how many zeros follow as many bytes of rows.
func (f *Frame) padding(rowBytes int64) int64 {
	if f == nil || f.Pad == 0 {
		return 0
	}
	return (f.Pad - rowBytes%f.Pad) % f.Pad
}
