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

// Size returns its bytes.
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
	Dims       []int64 // nil: a scalar; the first one may be 0
	Attributes []Attribute

	Data    []byte   // written with the object
	At      int64    // contiguous from that byte of the file on, where the caller writes them; 0 is nowhere
	Align   int64    // what At is, or has to become, a multiple of
	Chunked *Chunked // in chunks of whole rows
	Files   []Piece  // in other files, one piece after the other
}

// Chunked says how the rows of a dataset become chunks, and where these are.
type Chunked struct {
	Recipe
	Stored []Stored // chunk i has the rows from i*Records on
	Tree   int64    // or where the file has the B-tree that lists them; 0: it is written
}

// Stored is a chunk in the file.
type Stored struct {
	At   int64
	Size int64  // in the file
	Mask uint32 // bit i set: it did not go through filter i
}

// Piece is where some bytes of a dataset are in another file.
type Piece struct {
	Name         string
	Offset, Size int64
}

// maxRank is the most axes that HDF5 has.
const maxRank = 32

// Bytes returns how many bytes the elements take, or an error where no file could hold them.
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

// Place gives every contiguous object with elements its At: the smallest alignment first, in
// order, from byte at on. It returns the first byte after them all.
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
