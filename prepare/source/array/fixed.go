package array

import (
	"errors"
	"io"
	"slices"

	"github.com/penstock/penstock/internal/codec/filter"

	"github.com/penstock/penstock/prepare/source"
)

// block is how much of an array is read at once.
const block = 256 << 10

// Fixed is an array of values of one size, one after the other.
type Fixed struct {
	Size int // bytes of a value in the file
	// converts values of the file to values of the field, in place or not; nil if they are the same
	convert func([]byte) []byte
}

// column returns the column whose values are in r from offset on.
func (f Fixed) column(field source.Field, count int64, r io.ReaderAt, offset int64) Column {
	return Column{
		Field: field, Count: count,
		Open: func() (Cursor, error) {
			bytes := io.NewSectionReader(r, offset, count*int64(f.Size))
			return f.Cursor(io.NopCloser(bytes), count), nil
		},
		At: func(i int64, buf []byte) ([]byte, error) {
			buf = slices.Grow(buf, f.Size)[:f.Size]
			if err := source.ReadAt(r, buf, offset+i*int64(f.Size)); err != nil {
				return buf, err
			}
			if f.convert == nil {
				return buf, nil
			}
			return f.convert(buf), nil
		},
		Rows: f.rows(r, offset),
	}
}

// rows returns what reads values [a, b) at once; nil if they have another size in the field than in the file.
func (f Fixed) rows(r io.ReaderAt, offset int64) func(a, b int64, dst []byte) error {
	if f.convert != nil {
		return nil
	}
	return func(a, _ int64, dst []byte) error { return source.ReadAt(r, dst, offset+a*int64(f.Size)) }
}

// stream returns the column whose values come out of what open returns.
func (f Fixed) stream(field source.Field, count int64, open func() (io.ReadCloser, error)) Column {
	return Column{Field: field, Count: count, Open: func() (Cursor, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return f.Cursor(r, count), nil
	}}
}

func (f Fixed) Cursor(r io.ReadCloser, count int64) Cursor {
	return &blockCursor{blockReader: &fixedReader{Fixed: f, r: r, left: count}}
}

// fixedReader reads the values in the file's order, and converts them.
type fixedReader struct {
	Fixed
	r    io.ReadCloser
	left int64 // values not read yet
}

// read returns the next values in a block of their own: cursors hand them out without a copy, so a block is not reused.
func (f *fixedReader) read() ([]byte, int, error) {
	n := min(int64(max(1, block/f.Size)), f.left)
	if n == 0 {
		return nil, 0, io.EOF
	}
	b := make([]byte, int(n)*f.Size)
	if _, err := io.ReadFull(f.r, b); err != nil {
		return nil, 0, err
	}
	if f.convert != nil {
		b = f.convert(b)
	}
	if f.left -= n; f.left == 0 {
		if err := f.end(); err != nil {
			return nil, 0, err
		}
	}
	return b, len(b) / int(n), nil
}

// end reads to the end, after the last value: compressed data has its checksum there.
func (f *fixedReader) end() error {
	var b [1]byte
	switch _, err := io.ReadFull(f.r, b[:]); err {
	case nil:
		return errLonger
	case io.EOF:
		return nil
	default:
		return err
	}
}

var errLonger = errors.New("has more bytes than its header promises")

func (f *fixedReader) Close() error { return f.r.Close() }

// Swapped returns the conversion from big to little endian of elements of that size, nil
// for bytes.
func Swapped(size int) func([]byte) []byte {
	if size == 1 {
		return nil
	}
	return func(b []byte) []byte {
		filter.SwapBytes(b, size)
		return b
	}
}

// Widened converts bytes to int64, as class numbers are stored.
func Widened(b []byte) []byte {
	out := make([]byte, 8*len(b))
	for i, x := range b {
		out[8*i] = x
	}
	return out
}
