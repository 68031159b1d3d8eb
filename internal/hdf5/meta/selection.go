package meta

import (
	"slices"
)

// Selection is a part of a dataspace: the spans that it has on each axis.
type Selection struct {
	All  bool // everything
	Axes []AxisSelection
}

// AxisSelection is a selection on one axis: Count blocks of Block elements, Stride apart, or Spans if the blocks are
// not regular.
type AxisSelection struct {
	Start, Stride, Count, Block int64
	Unlimited                   bool       // Count or Block is without limit
	Spans                       [][2]int64 // first and last elements, in order
}

// Types of serialized selections.
const (
	selectNone = iota
	selectPoints
	selectHyperslabs
	selectAll
)

// parseSelection reads a serialized selection of elements. A selection of no elements has no axes.
func parseSelection(c *cursor) (s Selection) {
	kind, version := c.U32(), c.U32()
	switch {
	case c.Err != nil:
	case kind == selectHyperslabs:
		return hyperslabs(c, version)
	case kind == selectNone, kind == selectAll:
		c.Skip(8)
		s.All = kind == selectAll
	default:
		c.Unsupported("selection of kind %d", kind)
	}
	return s
}

// hyperslabs reads the fields of hyperslabs after their version. Regular hyperslabs have start, stride, count and block
// for each axis; irregular hyperslabs have a list of blocks with two corners each.
func hyperslabs(c *cursor, version uint32) (s Selection) {
	flags, width := uint8(0), 4
	switch version {
	case 1:
		c.Skip(8)
	case 2:
		flags, width = c.U8(), 8
		c.Skip(4)
	case 3:
		flags = c.U8()
		width = int(c.U8())
	default:
		c.Unsupported("hyperslabs of version %d", version)
		return s
	}
	rank := uint64(c.U32())
	if c.Err == nil && (rank > maxRank || width != 2 && width != 4 && width != 8) {
		c.Corrupt("hyperslabs of %d axes, %d bytes a number", rank, width)
		return s
	}
	if flags&1 == 0 {
		return blockList(c, int(rank), width)
	}
	for range rank {
		var x [4]uint64
		for i := range x {
			x[i] = c.Uint(width)
		}
		limit := uint64(1)<<(8*width-1)<<1 - 1 // all bits one
		a := AxisSelection{Unlimited: x[2] == limit || x[3] == limit}
		if !a.Unlimited && c.Err == nil && slices.ContainsFunc(x[:], func(n uint64) bool { return n > 1<<62 }) {
			c.Corrupt("hyperslab of %d blocks of %d from %d", x[2], x[3], x[0])
		}
		a.Start, a.Stride, a.Count, a.Block = int64(x[0]), int64(x[1]), int64(x[2]), int64(x[3])
		s.Axes = append(s.Axes, a)
	}
	return s
}

// blockList reads hyperslabs that are listed by their corners. Only lists that form a grid, the product of spans on
// each axis, are accepted: readers go through a selection axis by axis.
func blockList(c *cursor, rank, width int) (s Selection) {
	n := c.Uint(width)
	if numbers, ok := product(n, uint64(2*rank)); c.Err == nil && (!ok || numbers > uint64(c.Left())) {
		c.Corrupt("%d hyperslabs", n)
		return s
	}
	spans := make([]map[[2]int64]bool, rank)
	for range n {
		corners := make([]int64, 2*rank)
		for i := range corners {
			corners[i] = int64(c.Uint(width))
		}
		for i := range spans {
			if spans[i] == nil {
				spans[i] = make(map[[2]int64]bool)
			}
			spans[i][[2]int64{corners[i], corners[rank+i]}] = true
		}
	}
	blocks := uint64(1)
	for _, axis := range spans {
		list := make([][2]int64, 0, len(axis))
		for span := range axis {
			list = append(list, span)
		}
		slices.SortFunc(list, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
		for i, span := range list {
			if c.Err == nil && (span[0] < 0 || span[1] < span[0] || i > 0 && span[0] <= list[i-1][1]) {
				c.Unsupported("hyperslabs that are not a grid")
			}
		}
		blocks *= uint64(len(list))
		s.Axes = append(s.Axes, AxisSelection{Spans: list})
	}
	if c.Err == nil && blocks != n {
		c.Unsupported("hyperslabs that are not a grid")
	}
	return s
}
