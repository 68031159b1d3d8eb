package meta

// noLimit is the length in MaxDims of an axis without limit.
const noLimit = -1

// maxRank is the largest number of axes in HDF5.
const maxRank = 32

// Dataspace is the shape of a dataset or attribute.
type Dataspace struct {
	Dims    []int64 // length of each axis; empty for a scalar
	MaxDims []int64 // same length as Dims; Unlimited for an axis that can grow for ever
	Null    bool    // holds no elements at all
}

// Elems returns the number of elements; ok is false if it exceeds 63 bits.
func (d Dataspace) Elems() (n int64, ok bool) {
	if d.Null {
		return 0, true
	}
	dims := make([]uint64, len(d.Dims))
	for i, x := range d.Dims {
		dims[i] = uint64(x)
	}
	p, ok := product(dims...)
	return int64(p), ok
}

// parseSpace reads a dataspace message (IV.A.2.b). Version 1 has no kind: no axes are a scalar. Version 2 tells a
// scalar, one element, from a null space, which has no elements. Without maximum dimensions a dataset cannot grow,
// and its maximum is its size.
func parseSpace(c *cursor) Dataspace {
	version := c.Version(1, 2)
	rank := int(c.U8())
	flags := c.U8()
	kind := c.U8() // reserved in version 1
	if version == 1 {
		c.Skip(4)
	}
	if c.Err == nil && rank > maxRank {
		c.Corrupt("%d axes, at most %d are possible", rank, maxRank)
	}
	if version == 2 && c.Err == nil && (kind > 2 || kind != 1 && rank != 0) {
		c.Corrupt("dataspace of kind %d with %d axes", kind, rank)
	}
	d := Dataspace{Null: version == 2 && kind == 2}
	d.Dims = axes(c, rank, axis)
	if flags&1 != 0 {
		d.MaxDims = axes(c, rank, maximum)
	} else {
		d.MaxDims = append([]int64(nil), d.Dims...)
	}
	if c.Err == nil {
		d.check(c)
	}
	return d
}

// axes reads rank lengths.
func axes(c *cursor, rank int, read func(*cursor) int64) []int64 {
	dims := make([]int64, rank)
	for i := range dims {
		dims[i] = read(c)
	}
	if c.Err != nil {
		return nil
	}
	return dims
}

// axis reads the length of an axis.
func axis(c *cursor) int64 {
	n := c.Length()
	if n > 1<<63-1 {
		c.Corrupt("axis of %d elements", n)
	}
	return int64(n)
}

// maximum reads the maximum of an axis, which may be unlimited.
func maximum(c *cursor) int64 {
	n := c.Length()
	switch {
	case n == undef:
		return noLimit
	case n > 1<<63-1:
		c.Corrupt("axis of %d elements", n)
	}
	return int64(n)
}

// check refuses an axis that is longer than its maximum. The numbers of chunks are computed from the maximum, so
// elements past it would have no place.
func (d Dataspace) check(c *cursor) {
	for i, m := range d.MaxDims {
		if m != noLimit && m < d.Dims[i] {
			c.Corrupt("axis %d has %d elements, more than its maximum of %d", i, d.Dims[i], m)
			return
		}
	}
}
