package chunk

import (
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
