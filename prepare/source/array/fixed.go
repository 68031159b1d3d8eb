package array

import (
	"errors"
	"io"
	"slices"

	"github.com/penstock/penstock/internal/codec/filter"

	"github.com/penstock/penstock/prepare/source"
)

// block is the size in bytes of the reads of a fixedReader.
const block = 256 << 10

// Fixed is the layout of an array whose values have one size and follow each other without gaps.
type Fixed struct {
	Size int // bytes of a value in the file
	// convert turns values of the file into values of the field, in place or in new memory; nil if they are the
	// same
	convert func([]byte) []byte
}

// column returns the column of count values in r from offset on. It has random access.
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

// rows returns the function for Column.Rows; nil if values are converted, as dst may have another size than the
// bytes of the file.
func (f Fixed) rows(r io.ReaderAt, offset int64) func(a, b int64, dst []byte) error {
	if f.convert != nil {
		return nil
	}
	return func(a, _ int64, dst []byte) error { return source.ReadAt(r, dst, offset+a*int64(f.Size)) }
}

// stream returns the column of count values that can only be read from the front; open returns a reader before the
// first value.
func (f Fixed) stream(field source.Field, count int64, open func() (io.ReadCloser, error)) Column {
	return Column{Field: field, Count: count, Open: func() (Cursor, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return f.Cursor(r, count), nil
	}}
}

// Cursor returns a cursor over the next count values of r, which it closes.
func (f Fixed) Cursor(r io.ReadCloser, count int64) Cursor {
	return &blockCursor{blockReader: &fixedReader{Fixed: f, r: r, left: count}}
}

// fixedReader reads values in the order of the file, and converts them.
type fixedReader struct {
	Fixed
	r    io.ReadCloser
	left int64 // number of values that were not read yet
}

// read returns the next values in new memory: cursors hand out slices of a block, so blocks are not reused.
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
	// The end is read together with the last values, so that a damaged file fails before its last record is used.
	if f.left -= n; f.left == 0 {
		if err := f.end(); err != nil {
			return nil, 0, err
		}
	}
	return b, len(b) / int(n), nil
}

// end reads on after the last value: decompressors compare their checksum only at the end of the data, and more
// data means a wrong header.
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

// Swapped returns the conversion of big-endian elements of size bytes to little endian, in place; nil for bytes.
func Swapped(size int) func([]byte) []byte {
	if size == 1 {
		return nil
	}
	return func(b []byte) []byte {
		filter.SwapBytes(b, size)
		return b
	}
}

// Widened converts uint8 to int64, the type of class numbers in datasets.
func Widened(b []byte) []byte {
	out := make([]byte, 8*len(b))
	for i, x := range b {
		out[8*i] = x
	}
	return out
}
