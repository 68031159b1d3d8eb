package meta

// Unlimited is the length in MaxDims of an axis without limit.
const Unlimited = -1

// maxRank is the most axes of an HDF5 dataspace.
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

func parseDataspace(c *cursor) Dataspace {
	version := c.version(1, 2)
	rank := int(c.u8())
	flags := c.u8()
	kind := c.u8() // reserved in version 1
	if version == 1 {
		c.skip(4)
	}
	if c.err == nil && rank > maxRank {
		c.corrupt("%d axes, at most %d are possible", rank, maxRank)
	}
	if version == 2 && c.err == nil && (kind > 2 || kind != 1 && rank != 0) {
		c.corrupt("dataspace of kind %d with %d axes", kind, rank)
	}
	d := Dataspace{Null: version == 2 && kind == 2}
	d.Dims = axes(c, rank, false)
	if flags&1 != 0 {
		d.MaxDims = axes(c, rank, true)
	} else {
		d.MaxDims = append([]int64(nil), d.Dims...)
	}
	if c.err == nil {
		d.check(c)
	}
	return d
}

// axes reads rank lengths. Only a maximum may be unlimited.
func axes(c *cursor, rank int, unlimited bool) []int64 {
	dims := make([]int64, 0, rank)
	for range rank {
		n := c.length()
		switch {
		case n == undef && unlimited:
			dims = append(dims, Unlimited)
		case n > 1<<63-1:
			c.corrupt("axis of %d elements", n)
		default:
			dims = append(dims, int64(n))
		}
	}
	if c.err != nil {
		return nil
	}
	return dims
}

func (d Dataspace) check(c *cursor) {
	for i, m := range d.MaxDims {
		if m != Unlimited && m < d.Dims[i] {
			c.corrupt("axis %d has %d elements, more than its maximum of %d", i, d.Dims[i], m)
			return
		}
	}
}
