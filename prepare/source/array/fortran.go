package array

import (
	"io"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// stripBytes is how much of an array in Fortran order is turned around at once: the more, the
// longer are the strips that are read of each of its columns.
const stripBytes = 16 << 20

// At least abreast strips are transposed together, so that what they write is close
// together. If the array has few records, its columns are read whole, as many as make
// wholeBytes.
const (
	abreast    = 16
	wholeBytes = 256 << 10
)

// fortranColumn returns the column of an array in Fortran order. In the file the elements that have
// one place in their records are side by side; a record is gathered from as many strips as it
// has elements. So any one record is dear, and the array is read from its beginning alone.
func (h Header) fortranColumn(field source.Field, count int64, r io.ReaderAt) Column {
	return Column{Field: field, Count: count, Open: func() (Cursor, error) {
		size := int64(h.DType.Size())
		s := &fortranReader{Header: h, r: r, count: count, record: field.RecordBytes(), order: cOrder(field.Shape),
			turn: turns[h.DType.Size()]}
		s.most = min(count, max(1, stripBytes/int64(s.record)))
		s.whole = abreast*count*size <= wholeBytes
		strip := s.most * size
		if s.group = abreast; s.whole {
			strip, s.group = count*size, int(wholeBytes/(count*size))
		}
		s.buf = make([]byte, int64(min(s.group, len(s.order)))*strip)
		return &blockCursor{blockReader: s}, nil
	}}
}

// cOrder returns, for the elements of an array in Fortran order, their places in C order.
func cOrder(shape tensor.Shape) []int {
	order := []int{0}
	for axis := range shape {
		stride := 1
		for _, n := range shape[axis+1:] {
			stride *= n
		}
		inner := order
		order = make([]int, 0, len(inner)*shape[axis])
		for i := range shape[axis] {
			for _, at := range inner {
				order = append(order, at+i*stride)
			}
		}
	}
	return order
}

// fortranReader gathers records from strips.
type fortranReader struct {
	Header
	r      io.ReaderAt
	count  int64
	record int   // bytes
	order  []int // of its elements, see cOrder
	most   int64 // records a block
	group  int   // strips read for one turn
	whole  bool  // the strips hold all records
	buf    []byte
	turn   turn
	at     int64 // records read
}

// read turns the next block of records from Fortran order, where the first axis varies fastest, to C order. The values
// of one record are then far apart in the file, so the block is read as strips, each the values of one element of all
// its records: reading record by record would touch the whole file for each.
func (s *fortranReader) read() ([]byte, int, error) {
	n := min(s.most, s.count-s.at)
	if n == 0 {
		return nil, 0, io.EOF
	}
	block := make([]byte, n*int64(s.record))
	for first := 0; first < len(s.order); first += s.group {
		order := s.order[first:min(first+s.group, len(s.order))]
		strips, stride, err := s.readStrips(int64(first), int64(len(order)), n)
		if err != nil {
			return nil, 0, err
		}
		s.turn(block, len(s.order), order, strips, stride)
	}
	if swap := Swapped(s.DType.Size()); s.BigEndian && swap != nil {
		block = swap(block)
	}
	s.at += n
	return block, s.record, nil
}

func (s *fortranReader) Close() error { return nil }

// readStrips returns strips of the next n records, and the bytes from one to the next.
func (s *fortranReader) readStrips(first, strips, n int64) (b []byte, stride int64, err error) {
	size := int64(s.DType.Size())
	if s.whole {
		stride = s.count * size
		b = s.buf[:strips*stride]
		return b[s.at*size:], stride, source.ReadAt(s.r, b, s.Offset+first*stride)
	}
	stride = n * size
	for k := range strips {
		err := source.ReadAt(s.r, s.buf[k*stride:][:stride], s.Offset+((first+k)*s.count+s.at)*size)
		if err != nil {
			return nil, 0, err
		}
	}
	return s.buf, stride, nil
}

// turn fills a block of records of that many elements: it puts the strips, which begin at
// multiples of stride, to the places in order.
type turn func(block []byte, elements int, order []int, strips []byte, stride int64)

// turns are by the size of an element.
var turns = map[int]turn{1: turn8, 2: turn16, 4: turn32, 8: turn64}

func turn8(block []byte, elements int, order []int, strips []byte, stride int64) {
	for r := 0; len(block) > 0; r, block = r+1, block[elements:] {
		for k, at := range order {
			block[at] = strips[k*int(stride)+r]
		}
	}
}

func turn16(block []byte, elements int, order []int, strips []byte, stride int64) {
	for r := 0; len(block) > 0; r, block = r+1, block[2*elements:] {
		for k, at := range order {
			*(*[2]byte)(block[2*at:]) = [2]byte(strips[k*int(stride)+2*r:])
		}
	}
}

func turn32(block []byte, elements int, order []int, strips []byte, stride int64) {
	for r := 0; len(block) > 0; r, block = r+1, block[4*elements:] {
		for k, at := range order {
			*(*[4]byte)(block[4*at:]) = [4]byte(strips[k*int(stride)+4*r:])
		}
	}
}

func turn64(block []byte, elements int, order []int, strips []byte, stride int64) {
	for r := 0; len(block) > 0; r, block = r+1, block[8*elements:] {
		for k, at := range order {
			*(*[8]byte)(block[8*at:]) = [8]byte(strips[k*int(stride)+8*r:])
		}
	}
}
