package array

import (
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// Header is the header of a file with one array.
type Header struct {
	DType     tensor.DType
	BigEndian bool
	fortran   bool // the first axis varies fastest, and there are several axes
	Shape     []int64
	Offset    int64 // of the first element in the file, in bytes
	text      *text // the form of texts, whose bytes DType and Shape describe; nil of numbers
}

// ReadNPY reads the header of a .npy file of numbers. Fortran order is an error: transposing needs reads at any
// position, and members of archives are read in order.
func ReadNPY(r io.Reader) (Header, error) {
	h, err := readAnyNPY(r)
	switch {
	case err == nil && h.fortran:
		err = errFortran
	case err == nil && h.text != nil:
		err = npy.ErrText
	}
	return h, err
}

// readAnyNPY reads the header of a .npy file of numbers in either order, or of texts.
func readAnyNPY(r io.Reader) (Header, error) {
	h, err := npy.Read(r)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("header: %w", CutShort(err))
	}
	made := Header{h.DType, h.BigEndian, h.Fortran, h.Shape, h.Offset, nil}
	switch isText := errors.Is(err, npy.ErrText); {
	case isText && h.Fortran:
		err = errors.New("is texts in Fortran order; rewrite it with numpy.save(file, numpy.ascontiguousarray(a))")
	case isText:
		made.text = &text{size: h.Text, wide: h.DType == tensor.Uint32, bigEndian: h.BigEndian, several: len(h.Shape) > 1}
		made.DType, made.BigEndian, made.Shape, err = tensor.Uint8, false, append(h.Shape, int64(h.Text)), nil
	}
	return made, err
}

var errSingle = errors.New("is a single number; an array of records has a first axis")

var errFortran = errors.New("is in Fortran order, which is supported only for .npy files that are not in an archive; " +
	"rewrite it with numpy.save(file, numpy.ascontiguousarray(a))")

// field returns the field whose records lie along the first axis, and the number of records. The number is limited
// so that it can be multiplied with the size of a record without overflow.
func (h Header) field(name, origin string) (source.Field, int64, error) {
	if len(h.Shape) == 0 || len(h.Shape) == 1 && h.text != nil {
		return source.Field{}, 0, errSingle
	}
	shape := make([]int, len(h.Shape)-1)
	for i, n := range h.Shape[1:] {
		shape[i] = int(n)
	}
	f := source.NumberField(name, h.DType, shape...)
	f.Origin = origin
	if err := f.Spec.Validate(); err != nil {
		return f, 0, err
	}
	if h.Shape[0] > (1<<62)/int64(f.RecordBytes()) {
		return f, 0, fmt.Errorf("%d records are more than any file holds", h.Shape[0])
	}
	return f, h.Shape[0], nil
}

// single returns the header of an array without axes as an array of one record, and true; any other header as it
// is.
func (h Header) single() (Header, bool) {
	switch {
	case len(h.Shape) == 0:
		h.Shape = []int64{1}
	case len(h.Shape) == 1 && h.text != nil:
		h.Shape = append([]int64{1}, h.Shape...)
	default:
		return h, false
	}
	return h, true
}

// layout returns the size of the records in the file and their conversion to values of the field.
func (h Header) layout(f source.Field) Fixed {
	l := Fixed{Size: f.RecordBytes()}
	if h.BigEndian {
		l.convert = Swapped(h.DType.Size())
	}
	return l
}

// checkSize compares the size of the elements by the header with the size of the file, both in bytes. Too many
// bytes are an error, too: they are a second array, which would silently be left out.
func (h Header) checkSize(need, size int64) error {
	switch there := size - h.Offset; {
	case need > there:
		return fmt.Errorf("is cut short: the header promises %d bytes of elements, there are %d", need, there)
	case need < there:
		return fmt.Errorf("has %d bytes after the array of its header, as of a second numpy.save into one file; write each "+
			"array to a file of its own", there-need)
	}
	return nil
}
