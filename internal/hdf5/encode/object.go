package encode

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/tensor"
)

// Element is the type of one element: text of Text bytes, UTF-8 padded with zeros, or else DType.
type Element struct {
	DType tensor.DType
	Text  int
}

// Size returns the bytes of an element.
func (e Element) Size() int {
	if e.Text > 0 {
		return e.Text
	}
	return e.DType.Size()
}

// Object is a dataset of an HDF5 file that is being made. Groups are made from the paths.
//
// At most one of Data, At, Chunked and Files says where the elements are.
type Object struct {
	Path       string // from the root on: "/group/name"
	Element    Element
	Dims       []int64 // nil for a scalar; the first may be 0
	Attributes []Attribute

	Data    []byte   // written with the object
	At      int64    // the elements are in one piece from this byte of the file on, where the caller writes them; 0 if not
	Align   int64    // At is, or Place makes it, a multiple of this
	Chunked *Chunked // the elements are in chunks of whole rows
	Files   []Piece  // the elements are in other files, one piece after the other
}

// Chunked says how the rows of a dataset are divided into chunks, and where these are in the file.
type Chunked struct {
	Recipe
	Stored []Stored // chunk i has the rows from i*Records on
	Tree   int64    // where the file has a B-tree that lists the chunks; 0 if File is to write it
}

// Stored is a chunk in the form in which the file has it.
type Stored struct {
	At   int64  // its first byte
	Size int64  // after the filters
	Mask uint32 // bit i is set if filter i was not applied
}

// Piece is a range of bytes in another file that holds some of a dataset's elements. HDF5 calls it
// external storage.
type Piece struct {
	Name         string
	Offset, Size int64
}

// maxRank is the most axes that a dataset of HDF5 has.
const maxRank = 32

// Bytes returns how many bytes the elements take, without compression, or an error if no file could
// hold them.
func (o *Object) Bytes() (int64, error) {
	size := o.Element.Size()
	if len(o.Dims) > maxRank {
		return 0, fmt.Errorf("%s: %d dimensions; HDF5 has at most %d", o.Path, len(o.Dims), maxRank)
	}
	n := int64(size)
	for i, dim := range o.Dims {
		if size <= 0 || dim < 0 || i > 0 && dim == 0 || n > 0 && dim > math.MaxInt64/4/n {
			return 0, fmt.Errorf("%s: shape %v of %d-byte elements is more than a file can hold", o.Path, o.Dims, size)
		}
		n *= dim
	}
	return n, nil
}

// Place sets At of every object that has elements and is not chunked, from byte at on. Objects of
// the smallest alignment come first, which wastes the least, and objects of one alignment in
// their order. It returns the first byte after all objects.
func Place(objects []Object, at int64) (end int64, err error) {
	for next := int64(1); next > 0; {
		align := next
		next = 0
		for i := range objects {
			o := &objects[i]
			if a := max(1, o.Align); a != align {
				if a > align && (next == 0 || a < next) {
					next = a
				}
				continue
			}
			n, err := o.Bytes()
			if err != nil {
				return 0, err
			}
			if n > 0 && o.Chunked == nil {
				o.At = (at + align - 1) / align * align
				at = o.At + n
			}
		}
	}
	return at, nil
}
