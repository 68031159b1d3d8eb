package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// source reads the file, which is mapped, or read by system calls.
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

// view returns bytes of a mapped file without a copy. The range comes from a chunk index, so it is compared with the
// size of the file. warm reads pages before they are accessed: a page fault would stop the thread, and not only the
// goroutine.
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

// Chunks are the chunks of an array that is not in an HDF5 file. They are numbered row by row through their grid. The
// methods may be called from any goroutine.
type Chunks interface {
	// Load returns the stored bytes of a chunk; nil if the chunk was never written. If it has to read them, it uses the
	// memory of buf, which it may replace.
	Load(ctx context.Context, place int64, buf *[]byte) ([]byte, error)

	// Possible reports whether a chunk can be stored in that many bytes. It is asked before memory for the chunk is
	// allocated.
	Possible(stored int) bool

	// Decode decodes a chunk into dst, with numbers in the byte order of this machine and elements in C order. It may
	// use the memory of spare, and replace it.
	Decode(dst, stored []byte, spare *[2][]byte) error

	// Name returns the name of the chunk, for errors.
	Name(place int64) string
}
