package chunk

import (
	"errors"
	"fmt"
	"strings"
)

// Error describes a chunk that could not be read, and why.
type Error struct {
	Dataset string  // path of the dataset in the file
	Coord   []int64 // first element of the chunk; nil if the layout has no chunks
	Offset  int64   // offset of the stored bytes in the file, user block included
	Size    int64   // number of stored bytes
	Filter  string  // the filter that failed, "" if no filter did
	Err     error
}

// Error names dataset, chunk, place in the file and filter.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hdf5: dataset %q: ", e.Dataset)
	if e.Coord != nil {
		fmt.Fprintf(&b, "chunk %v ", e.Coord)
	}
	fmt.Fprintf(&b, "at byte %d (%d bytes): ", e.Offset, e.Size)
	if e.Filter != "" {
		b.WriteString(e.Filter + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause: meta.ErrCorrupt, meta.ErrUnsupported or the error of the io.ReaderAt.
func (e *Error) Unwrap() error { return e.Err }

// failed makes an Error for a chunk.
func (d *dataset) failed(s stored, err error) error {
	e := &Error{Dataset: d.path, Offset: s.offset, Size: s.size, Err: err}
	if !d.flat {
		e.Coord = d.grid.coord(s.place)
	}
	if u := (*undone)(nil); errors.As(err, &u) {
		e.Filter, e.Err = u.filter, u.err
	}
	return e
}
