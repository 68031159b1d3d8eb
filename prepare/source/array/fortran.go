package array

import (
	"io"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// stripBytes is the size of the blocks in which an array in Fortran order is transposed. Larger blocks make longer
// contiguous reads of each column.
const stripBytes = 16 << 20

// The transposition handles at least abreast strips together, so that the bytes that it writes for a record are
// close together. If an array has so few records that abreast whole columns fit in wholeBytes, columns are read
// whole, as many as fit.
const (
	abreast    = 16
	wholeBytes = 256 << 10
)

// fortranColumn returns the column of an array in Fortran order. The file has the first element of all records,
// then the second element of all records, and so on; a record is gathered from as many places as it has
// elements. Reading one record would cost as much as reading many, so the column has no random access.
func (h Header) fortranColumn(field source.Field, count int64, r io.ReaderAt) Column {
	return Column{Field: field, Count: count, Open: func() (Cursor, error) {
		size := int64(h.DType.Size())
		s := &fortranReader{Header: h, r: r, count: count, record: field.RecordBytes(), order: cOrder(field.Shape),
			turn: turns[h.DType.Size()]}
		// A block has at least one record, even if the record is larger than stripBytes.
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

// cOrder returns, for each element of a record in Fortran order, its position in C order.
func cOrder(shape tensor.Shape) []int {
	order := []int{0}
	for axis := range shape {
		stride := 1
		for _, n := range shape[axis+1:] {
			stride *= n
		}
		// Axes are added from the first, the fastest in the file: each value of an axis repeats the order of the
		// axes before it, moved by its stride in C order.
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

// fortranReader reads an array in Fortran order block by block. A strip is the values of one element in all records
// of the block, which are contiguous in the file.
type fortranReader struct {
	Header
	r      io.ReaderAt
	count  int64
	record int   // bytes
	order  []int // by element in the file: its position in a record, see cOrder
	most   int64 // records in a block
	group  int   // strips that are read for one call of turn
	whole  bool  // strips have all records of the array and not only those of the block
	buf    []byte
	turn   turn
	at     int64 // number of records read so far
}

// read returns the next block in C order. It reads the block strip by strip: reading record by record would touch
// the whole file for each record.
func (s *fortranReader) read() ([]byte, int, error) {
	n := min(s.most, s.count-s.at)
	if n == 0 {
		return nil, 0, io.EOF
	}
	// Cursors hand out slices of a block, so each block has new memory.
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

// readStrips returns strips with the next n records, beginning at element first, and the distance between strips in
// bytes.
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

// turn transposes strips into a block of records of so many elements: strip k begins at k*stride and goes to
// position order[k] of the records.
type turn func(block []byte, elements int, order []int, strips []byte, stride int64)

// turns has a function for each element size, as a constant size compiles to one move for each element.
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
