package arrow

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/rows"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// row is row i of a batch. It stays valid as long as the file is open.
type row struct {
	batch *loaded
	i     int64
}

// Each implements rows.Row.
func (r row) Each(buf *[]byte, v rows.Visitor) error {
	for _, l := range r.batch.file.leaves {
		at := v.Column([]byte(l.Name))
		if at < 0 {
			continue
		}
		var x rows.Value
		if err := r.batch.value(l, r.i, &x, buf); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		if err := v.Value(at, &x); err != nil {
			return err
		}
	}
	return nil
}

// value sets x to the value of a column in row i. A null in any enclosing struct makes the value null.
func (l *loaded) value(f *leaf, i int64, x *rows.Value, buf *[]byte) error {
	a := l.arrays[f.path[0]]
	for _, k := range f.path[1:] {
		if null, err := l.null(a, i); err != nil || null {
			x.Null = true
			return err
		}
		// Lengths of children are claims of the file, and a struct may be longer than they are.
		if a = a.children[k]; i >= a.length {
			return store.ErrCorrupt
		}
	}
	if null, err := l.null(a, i); err != nil || null {
		x.Null = true
		return err
	}
	if a.kind != lists && a.kind != fixedList || a.dictionary >= 0 {
		if a.dtype != tensor.Invalid && a.dictionary < 0 {
			return l.numbers(a, i, i+1, x, buf)
		}
		var err error
		x.Data, err = l.text(a, i, buf)
		return err
	}
	return l.list(a, i, x, buf)
}

// null reports whether value i of an array is null.
func (l *loaded) null(a *array, i int64) (bool, error) {
	c, err := l.content(a)
	if err != nil {
		return false, err
	}
	return c.validity != nil && c.validity[i/8]>>(i%8)&1 == 0, nil
}

// list sets x to the elements of list i. Lists in lists are narrowed level by level to one range of elements, whose
// lengths become the dimensions.
func (l *loaded) list(a *array, i int64, x *rows.Value, buf *[]byte) error {
	low, high := i, i+1
	for first := true; a.kind == lists || a.kind == fixedList; first = false {
		if !first {
			if err := l.noNulls(a, low, high); err != nil {
				return err
			}
		}
		length, err := l.narrow(a, &low, &high)
		if err != nil {
			return err
		}
		if a = a.children[0]; x.Rank < tensor.MaxRank-1 {
			x.Dims[x.Rank] = length
			x.Rank++
		}
		// An empty list says nothing about the lengths further in.
		if low == high {
			x.SetShape(0)
			break
		}
	}
	for low == high && (a.kind == lists || a.kind == fixedList) {
		a = a.children[0]
	}
	if a.kind == structs { // of images: newLeaf refuses all others
		if err := l.noNulls(a, low, high); err != nil {
			return err
		}
		if a = a.children[a.imageBytes()]; high > a.length {
			return store.ErrCorrupt
		}
	}
	if a.dtype != tensor.Invalid && a.dictionary < 0 {
		if err := l.noNulls(a, low, high); err != nil {
			return err
		}
		return l.numbers(a, low, high, x, buf)
	}
	x.List = true
	for k := low; k < high; k++ {
		if err := l.noNulls(a, k, k+1); err != nil {
			return err
		}
		item, err := l.text(a, k, buf)
		if err != nil {
			return err
		}
		x.Items = append(x.Items, item)
	}
	return nil
}

// narrow replaces the range [low, high) of lists by the range of their elements. It returns the number of elements
// in each list, or rows.Varies if the lists differ.
func (l *loaded) narrow(a *array, low, high *int64) (length int, err error) {
	begin, end, n := *low*int64(a.width), *high*int64(a.width), int64(a.width)
	if a.kind == lists {
		c, err := l.content(a)
		if err != nil {
			return 0, err
		}
		begin, end = c.offset(a, *low), c.offset(a, *high)
		n = c.offset(a, *low+1) - begin
		for i := *low; i < *high; i++ {
			switch own := c.offset(a, i+1) - c.offset(a, i); {
			case own < 0:
				return 0, errExtent
			case own != n:
				length = rows.Varies
			}
		}
	}
	if begin < 0 || end < begin || end > a.children[0].length || n > math.MaxInt32 {
		return 0, errExtent
	}
	if *low, *high = begin, end; length == 0 {
		length = int(n)
	}
	return length, nil
}

// offset returns offset i of an array of binaries or lists: the position where value i begins.
func (c *content) offset(a *array, i int64) int64 {
	if a.width == 4 {
		return int64(int32(binary.LittleEndian.Uint32(c.offsets[4*i:])))
	}
	return int64(binary.LittleEndian.Uint64(c.offsets[8*i:]))
}

// noNulls returns an error if a value in [low, high) is null. A field of numbers has no representation for a null
// in a list. The loop ends early if the array has no nulls at all.
func (l *loaded) noNulls(a *array, low, high int64) error {
	for i := low; i < high; i++ {
		null, err := l.null(a, i)
		if err != nil {
			return err
		}
		if null {
			return source.ValueError("a null in a list")
		}
		if a.nulls == 0 {
			return nil
		}
	}
	return nil
}

// numbers sets x to the numbers [low, high) of an array. Numbers that already have the field's layout are not
// copied.
func (l *loaded) numbers(a *array, low, high int64, x *rows.Value, buf *[]byte) error {
	c, err := l.content(a)
	if err != nil {
		return err
	}
	if x.DType = a.dtype; low < 0 || high < low || high > a.length {
		return errExtent
	}
	if low == high {
		return nil
	}
	// Values that need conversion are appended to buf; numbers that do not are a slice of the batch.
	data, begin := c.data[0].raw, len(*buf)
	switch a.kind {
	case bits:
		for i := low; i < high; i++ {
			*buf = append(*buf, data[i/8]>>(i%8)&1)
		}
	case decimal:
		for i := low; i < high; i++ {
			number := a.decimal(data[i*int64(a.width) : (i+1)*int64(a.width)])
			*buf = binary.LittleEndian.AppendUint64(*buf, math.Float64bits(number))
		}
	default:
		x.Data = data[low*int64(a.width) : high*int64(a.width)]
		if a.dtype != tensor.Bool {
			return nil
		}
		// bool8 has any number but 0 for true, and a field of booleans has only 1.
		for _, b := range x.Data {
			*buf = append(*buf, min(b, 1))
		}
	}
	x.Data = (*buf)[begin:]
	return nil
}

// decimal returns the float64 that is nearest to a decimal. Arrow stores decimals little endian.
func (n *node) decimal(b []byte) float64 {
	digits := slices.Clone(b)
	slices.Reverse(digits)
	return column.Decimal(column.TwosComplement(digits), n.scale)
}

// text returns the bytes of value i. A view (16 bytes) has the length, and up to 12 bytes of the value itself, or
// four bytes of it with the number of a data buffer and an offset.
func (l *loaded) text(a *array, i int64, buf *[]byte) ([]byte, error) {
	c, err := l.content(a)
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= a.length {
		return nil, errExtent
	}
	if a.dictionary >= 0 {
		return l.word(a, c, i, buf)
	}
	if a.kind == views {
		view := c.offsets[16*i:]
		n := int64(int32(binary.LittleEndian.Uint32(view)))
		// A short value is inside of its view.
		if n >= 0 && n <= 12 {
			return view[4 : 4+n : 4+n], nil
		}
		which := binary.LittleEndian.Uint32(view[8:])
		if n < 0 || int(which) >= len(c.data) {
			return nil, errExtent
		}
		return l.bytes(&c.data[which], int64(int32(binary.LittleEndian.Uint32(view[12:]))), n, buf)
	}
	begin, end := c.offset(a, i), c.offset(a, i+1)
	if begin == end {
		return nil, nil
	}
	return l.bytes(&c.data[0], begin, end-begin, buf)
}

// dictionary is the values of dictionary-encoded columns. A stream may send them in several batches. They are
// loaded once, on first use.
type dictionary struct {
	parts  []*batch
	once   sync.Once
	loaded []*loaded
}

// word returns the dictionary value that value i of an array refers to.
func (l *loaded) word(a *array, c *content, i int64, buf *[]byte) ([]byte, error) {
	d := l.dictionaries[a.dictionary]
	if d == nil {
		return nil, source.ValueError("its dictionary is not there: %w", store.ErrCorrupt)
	}
	d.once.Do(func() {
		for _, p := range d.parts {
			d.loaded = append(d.loaded, p.load())
		}
	})
	width := int64(a.index.width)
	var word [8]byte
	copy(word[:], c.data[0].raw[i*width:(i+1)*width])
	n := int64(binary.LittleEndian.Uint64(word[:]))
	// An index counts through all batches of the dictionary.
	for _, p := range d.loaded {
		if n >= 0 && n < p.rows {
			if null, err := p.null(p.arrays[0], n); err != nil || null {
				return nil, err
			}
			return p.text(p.arrays[0], n, buf)
		}
		n -= p.rows
	}
	return nil, errExtent
}
