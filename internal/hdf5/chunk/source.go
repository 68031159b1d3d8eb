package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// source is the file: mapped, or read by system calls.
type source struct {
	r      io.ReaderAt
	mapped []byte
	warm   func(offset, size int64) error // nil for none
}

// bytes returns n bytes at off: a view of the mapping, or a copy in *buf.
func (s *source) bytes(off, n int64, buf *[]byte) ([]byte, error) {
	if s.mapped != nil {
		return s.view(off, n)
	}
	*buf = grow(*buf, int(n))
	return *buf, s.read(*buf, off)
}

// view returns bytes of a mapped file without a copy. The range comes from a chunk index, so it is checked against the
// file. warm reads pages before they are touched: a fault would stop the thread, and not only the goroutine.
func (s *source) view(off, n int64) ([]byte, error) {
	size := int64(len(s.mapped))
	if off < 0 || off > size || n > size-off {
		return nil, cut(off, n)
	}
	if s.warm != nil {
		if err := s.warm(off, n); err != nil {
			return nil, err
		}
	}
	return s.mapped[off : off+n : off+n], nil
}

// read fills dst from off.
func (s *source) read(dst []byte, off int64) error {
	if s.mapped != nil {
		b, err := s.view(off, int64(len(dst)))
		copy(dst, b)
		return err
	}
	n, err := s.r.ReadAt(dst, off)
	switch {
	case n == len(dst):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return cut(off, int64(len(dst)))
	}
	return err
}

func cut(off, n int64) error {
	return fmt.Errorf("the file ends before byte %d, was it truncated? %w", off+n, meta.ErrCorrupt)
}

// Chunks are the chunks of an array that is not in an HDF5 file. They are counted row by row through the grid
// that they are in. The methods may be called from any goroutine.
type Chunks interface {
	// Load returns the stored bytes of a chunk, in the memory of buf, which it may replace, where it has to read
	// them; nil if the chunk was never written.
	Load(ctx context.Context, place int64, buf *[]byte) ([]byte, error)

	// Possible reports whether that many stored bytes can be a chunk. It is asked before memory is taken for one.
	Possible(stored int) bool

	// Decode fills dst, of the size of a chunk, with numbers in the order of bytes of this machine and elements in C
	// order. It may use the memory of spare, and replace it.
	Decode(dst, stored []byte, spare *[2][]byte) error

	// Name says which chunk that is, for errors.
	Name(place int64) string
}
