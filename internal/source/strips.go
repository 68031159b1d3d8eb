package source

import (
	"io"

	"github.com/penstock/penstock/tensor"
)

// stripBytes is how much of an array in Fortran order is turned around at once: the more, the
// longer are the strips that are read of each of its columns.
const stripBytes = 16 << 20

// At least abreast strips are turned around together, so that what they write lies close
// together. Where the array has few records, its columns are read whole, as many as make
// wholeBytes.
const (
	abreast    = 16
	wholeBytes = 256 << 10
)

// strips returns the column of an array in Fortran order. In the file the elements that have
// one place in their records lie side by side; a record is gathered from as many strips as it
// has elements. So any one record is dear, and the array is read from its beginning alone.
func (h npyHeader) strips(field Field, count int64, r io.ReaderAt) column {
	return column{field: field, count: count, open: func() (cursor, error) {
		size := int64(h.dtype.Size())
		c := &stripCursor{npyHeader: h, r: r, count: count, record: field.RecordBytes(), order: cOrder(field.Shape), turn: turns[h.dtype.Size()]}
		c.most = min(count, max(1, stripBytes/int64(c.record)))
		c.whole = abreast*count*size <= wholeBytes
		strip := c.most * size
		if c.group = abreast; c.whole {
			strip, c.group = count*size, int(wholeBytes/(count*size))
		}
		c.strips = make([]byte, int64(min(c.group, len(c.order)))*strip)
		return c, nil
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

// stripCursor reads a block of records at a time. Each block is memory of its own, as its
// values go their own ways.
type stripCursor struct {
	npyHeader
	r      io.ReaderAt
	count  int64
	record int   // bytes
	order  []int // of its elements, see cOrder
	most   int64 // records a block
	group  int   // strips read for one turn
	whole  bool  // they are those of all records
	strips []byte
	turn   turn

	at    int64 // records read
	block []byte
}

func (c *stripCursor) next() ([]byte, error) {
	if len(c.block) == 0 {
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
	value := c.block[:c.record:c.record]
	c.block = c.block[c.record:]
	return value, nil
}

// fill reads the next block.
func (c *stripCursor) fill() error {
	n := min(c.most, c.count-c.at)
	if n == 0 {
		return io.EOF
	}
	size := int64(c.dtype.Size())
	block := make([]byte, n*int64(c.record))
	for first := 0; first < len(c.order); first += c.group {
		order := c.order[first:min(first+c.group, len(c.order))]
		strips, stride, err := c.read(int64(first), int64(len(order)), n)
		if err != nil {
			return err
		}
		c.turn(block, len(c.order), order, strips, stride)
	}
	if swap := swapped(int(size)); c.big && swap != nil {
		block = swap(block)
	}
	c.at, c.block = c.at+n, block
	return nil
}

func (c *stripCursor) close() error { return nil }

// read returns strips of the next n records, and the bytes from one to the next.
func (c *stripCursor) read(first, strips, n int64) (b []byte, stride int64, err error) {
	size := int64(c.dtype.Size())
	if c.whole {
		stride = c.count * size
		b = c.strips[:strips*stride]
		return b[c.at*size:], stride, readAt(c.r, b, c.offset+first*stride)
	}
	stride = n * size
	for k := range strips {
		err := readAt(c.r, c.strips[k*stride:][:stride], c.offset+((first+k)*c.count+c.at)*size)
		if err != nil {
			return nil, 0, err
		}
	}
	return c.strips, stride, nil
}

// turn fills a block of records of so many elements: it puts the strips, which begin at
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
