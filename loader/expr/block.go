package expr

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/order"
)

// source is a Source with its optional interfaces.
type source struct {
	loader.Source
	can loader.Capabilities
}

// newSource resolves what src can do.
func newSource(src loader.Source) (source, error) {
	can, err := loader.CapabilitiesOf(src)
	return source{src, can}, err
}

// block is some consecutive records whose values are computed together, with memory for the values.
// Each goroutine of a scan has one block, and reuses its memory from one block to the next.
type block struct {
	ctx      context.Context
	src      source
	first, n int

	indices []int
	fields  map[string]column // that were read

	integers pool[int64]
	floats   pool[float64]
	truths   pool[bool]
	bytes    pool[byte]
}

// begin moves the block to n records from first on. It reuses the memory of the columns computed so far, which are
// invalid from now on.
func (b *block) begin(first, n int) {
	b.first, b.n = first, n
	clear(b.fields)
	b.integers.used, b.floats.used, b.truths.used, b.bytes.used = 0, 0, 0, 0
	b.indices = slices.Grow(b.indices[:0], n)[:n]
	order.Consecutive(first, b.indices)
}

// pool is memory that is reused for each block. Columns are not freed one by one: begin resets
// used, and the next block takes the same slices in the same order.
type pool[T any] struct {
	all  [][]T
	used int
}

// take returns n elements with arbitrary values.
func (p *pool[T]) take(n int) []T {
	if p.used == len(p.all) {
		p.all = append(p.all, nil)
	}
	s := &p.all[p.used]
	p.used++
	*s = slices.Grow((*s)[:0], n)[:n]
	return *s
}

// recordAt returns the record that contains value i of a list column.
func recordAt(offsets []int64, i int) int {
	if offsets == nil {
		return i
	}
	k, found := slices.BinarySearch(offsets, int64(i))
	for found && k+1 < len(offsets) && offsets[k+1] == int64(i) {
		k++
	}
	if !found {
		k--
	}
	return k
}

// spread repeats the value of each record for every element of the record's list.
func (b *block) spread(c column, k kind, offsets []int64) column {
	if c.one {
		return c
	}
	n := int(offsets[len(offsets)-1])
	switch k {
	case truthKind:
		c.truths = repeat(b.truths.take(n), c.truths, offsets)
	case integerKind, unsignedKind:
		c.integers = repeat(b.integers.take(n), c.integers, offsets)
	case floatKind:
		c.floats = repeat(b.floats.take(n), c.floats, offsets)
	}
	c.offsets = offsets
	return c
}

func repeat[T any](dst, values []T, offsets []int64) []T {
	for i, v := range values {
		for k := offsets[i]; k < offsets[i+1]; k++ {
			dst[k] = v
		}
	}
	return dst
}

// operands returns the values of two expressions, paired as pair does.
func (b *block) operands(at int, left, right expression, active []bool) (
	x, y column, n int, offsets []int64, err error) {
	if x, err = left.of(b, active); err != nil {
		return x, y, 0, nil, err
	}
	if y, err = right.of(b, active); err != nil {
		return x, y, 0, nil, err
	}
	return b.pair(at, x, y, left.kindType, right.kindType, active)
}

// pair gives two columns equally many values, and returns their number and the offsets of lists. A
// value per record is repeated for the record's list. Lists of different lengths are an error of
// their record, unless the record is not active.
func (b *block) pair(at int, x, y column, xt, yt kindType, active []bool) (
	_, _ column, n int, offsets []int64, err error) {
	switch {
	case x.one && y.one:
		return x, y, 1, nil, nil
	case !xt.list && !yt.list:
		return x, y, b.n, nil, nil
	case xt.list && yt.list:
		offsets = x.offsets
		for i := range active {
			n, m := x.offsets[i+1]-x.offsets[i], y.offsets[i+1]-y.offsets[i]
			if n == m {
				continue
			}
			if active[i] {
				return x, y, 0, nil, recordError(b, i, at, "there are %d values on the left, and %d on the right",
					n, m)
			}
			x, y = b.without(x, xt.kind, active), b.without(y, yt.kind, active)
			offsets = x.offsets
			break
		}
	case xt.list:
		offsets, y = x.offsets, b.spread(y, yt.kind, x.offsets)
	default:
		offsets, x = y.offsets, b.spread(x, xt.kind, y.offsets)
	}
	return x, y, int(offsets[len(offsets)-1]), offsets, nil
}

// without returns lists in which the lists of inactive records are empty.
func (b *block) without(c column, k kind, active []bool) column {
	out := column{offsets: b.integers.take(b.n + 1)}
	out.offsets[0] = 0
	for i := range b.n {
		out.offsets[i+1] = out.offsets[i]
		if active[i] {
			out.offsets[i+1] += c.offsets[i+1] - c.offsets[i]
		}
	}
	n := int(out.offsets[b.n])
	switch k {
	case truthKind:
		out.truths = choose(b.truths.take(n), c.truths, c.offsets, active)
	case integerKind, unsignedKind:
		out.integers = choose(b.integers.take(n), c.integers, c.offsets, active)
	case floatKind:
		out.floats = choose(b.floats.take(n), c.floats, c.offsets, active)
	}
	return out
}

func choose[T any](dst, values []T, offsets []int64, active []bool) []T {
	n := 0
	for i, a := range active {
		if a {
			n += copy(dst[n:], values[offsets[i]:offsets[i+1]])
		}
	}
	return dst
}

// recordError returns an error that names its record.
func recordError(b *block, i int, at int, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if b.src.Source != nil {
		reason = fmt.Sprintf("record %d: %s", b.first+i, reason)
	}
	return failure{at, reason}
}
