package expr

import (
	"bytes"
	"slices"
	"strconv"
)

// comparison returns the comparison of two values.
func comparison(n *node, left, right expression) (expression, error) {
	if left.number() {
		right = counted(right)
	}
	if right.number() {
		left = counted(left)
	}
	switch {
	case left.number() && right.number() &&
		(!left.label() || !right.label() || slices.Equal(left.classes, right.classes)):
		return compareNumbers(n, left, right)
	case left.kind == truthKind && right.kind == truthKind:
		if n.text != "=" && n.text != "!=" {
			return left, failf(n.at, "true and false have no order; compare them by = or !=")
		}
		return compared(n, left, right, orderTruths)
	case left.label() && right.constant != nil && right.kind == textKind:
		return compareLabel(n, left, right.constant.text, right.at, relations[n.text])
	case right.label() && left.constant != nil && left.kind == textKind:
		r := relations[n.text]
		r[below], r[above] = r[above], r[below]
		return compareLabel(n, right, left.constant.text, left.at, r)
	}
	l, r, err := asTexts(left, right)
	if err != nil {
		return l, err
	}
	if l.kind != textKind || r.kind != textKind {
		return left, incomparable(n.at, left.kindType, right.kindType)
	}
	return compared(n, l, r, orderTexts)
}

// incomparable returns the error for two kinds that cannot be compared.
func incomparable(at int, a, b kindType) error {
	if a.kind == truthKind || b.kind == truthKind {
		return failf(at, "%s and %s cannot be compared; write x, not x, or x = true", a, b)
	}
	return failf(at, "%s and %s cannot be compared", a, b)
}

// asTexts replaces labels by the names of their classes.
func asTexts(left, right expression) (l, r expression, err error) {
	if left.label() {
		if left, err = named(left); err != nil {
			return left, right, err
		}
	}
	if right.label() {
		right, err = named(right)
	}
	return left, right, err
}

// compared returns a comparison by the order of values, which order computes.
func compared(n *node, left, right expression, order func(dst []uint8, x, y column)) (expression, error) {
	rel := relations[n.text]
	return pairwise(n, left, right, func(_ *block, dst []bool, x, y column) {
		var some [256]uint8
		for at := 0; at < len(dst); at += len(some) {
			part := dst[at:min(at+len(some), len(dst))]
			order(some[:len(part)], x.from(at), y.from(at))
			for i := range part {
				part[i] = rel[some[i]]
			}
		}
	})
}

// from returns the values of a column from index i on.
func (c column) from(i int) column {
	if c.one || i == 0 {
		return c
	}
	switch {
	case c.integers != nil:
		c.integers = c.integers[i:]
	case c.floats != nil:
		c.floats = c.floats[i:]
	case c.truths != nil:
		c.truths = c.truths[i:]
	default:
		c.texts.offsets = c.texts.offsets[i:]
	}
	return c
}

// pairwise returns a condition that f computes from pairs of values.
func pairwise(n *node, left, right expression, f func(b *block, dst []bool, x, y column)) (expression, error) {
	e := expression{kindType: kindType{kind: truthKind, list: left.list || right.list}, at: n.at}
	e.of = func(b *block, active []bool) (column, error) {
		x, y, count, offsets, err := b.operands(n.at, left, right, active)
		if err != nil {
			return column{}, err
		}
		out := b.truths.take(count)
		f(b, out, x, y)
		return column{one: x.one && y.one, truths: out, offsets: offsets}, nil
	}
	return fold(e, left, right)
}

// compareNumbers compares two numbers exactly: converting a large integer to float64 first would
// make it equal to its neighbors.
func compareNumbers(n *node, left, right expression) (expression, error) {
	left, right = rounded(left, right.dtype), rounded(right, left.dtype)
	e, err := compareRead(n, left, right)
	if err != nil || left.constant != nil && right.constant != nil {
		return e, err
	}
	r := relations[n.text]
	switch {
	case right.constant != nil:
		return skipping(e, left, func(low, high float64) (truth, ok bool) {
			return decided(r, *right.constant, low, high)
		}), nil
	case left.constant != nil:
		r[below], r[above] = r[above], r[below]
		return skipping(e, right, func(low, high float64) (truth, ok bool) {
			return decided(r, *left.constant, low, high)
		}), nil
	}
	return e, nil
}

// compareRead compares numbers without looking at limits. The two usual pairs of kinds have loops
// of their own.
func compareRead(n *node, left, right expression) (expression, error) {
	switch {
	case left.kind == right.kind && left.kind == integerKind:
		return pairwise(n, left, right, func(_ *block, dst []bool, x, y column) {
			compareValues(n.text, dst, x.integers, y.integers, x.step(), y.step())
		})
	case left.kind == right.kind && left.kind == floatKind:
		return pairwise(n, left, right, func(_ *block, dst []bool, x, y column) {
			compareValues(n.text, dst, x.floats, y.floats, x.step(), y.step())
		})
	}
	return compared(n, left, right, func(dst []uint8, x, y column) {
		sx, sy := x.step(), y.step()
		for i := range dst {
			dst[i] = orderNumbers(&x, &y, left.kind, right.kind, i*sx, i*sy)
		}
	})
}

func compareValues[T int64 | float64](op string, dst []bool, x, y []T, sx, sy int) {
	switch op {
	case "=":
		for i := range dst {
			dst[i] = x[i*sx] == y[i*sy]
		}
	case "!=":
		for i := range dst {
			dst[i] = x[i*sx] != y[i*sy]
		}
	case "<":
		for i := range dst {
			dst[i] = x[i*sx] < y[i*sy]
		}
	case "<=":
		for i := range dst {
			dst[i] = x[i*sx] <= y[i*sy]
		}
	case ">":
		for i := range dst {
			dst[i] = x[i*sx] > y[i*sy]
		}
	case ">=":
		for i := range dst {
			dst[i] = x[i*sx] >= y[i*sy]
		}
	}
}

// orderNumbers returns the order of value i of x and value j of y, whose kinds differ.
func orderNumbers(x, y *column, kx, ky kind, i, j int) uint8 {
	switch {
	case kx == floatKind:
		return flipped(orderFloat(y.integers[j], ky == unsignedKind, x.floats[i]))
	case ky == floatKind:
		return orderFloat(x.integers[i], kx == unsignedKind, y.floats[j])
	}
	return orderIntegers(x.integers[i], y.integers[j], kx == unsignedKind, ky == unsignedKind)
}

func orderTruths(dst []uint8, x, y column) {
	sx, sy := x.step(), y.step()
	for i := range dst {
		dst[i] = equal
		if x.truths[i*sx] != y.truths[i*sy] {
			dst[i] = above
		}
	}
}

func orderTexts(dst []uint8, x, y column) {
	sx, sy := x.step(), y.step()
	for i := range dst {
		dst[i] = uint8(bytes.Compare(x.texts.at(i*sx), y.texts.at(i*sy)) + 1)
	}
}

// text64 returns an integer as text.
func text64(x int64, signed bool) string {
	if signed {
		return strconv.FormatInt(x, 10)
	}
	return strconv.FormatUint(uint64(x), 10)
}
