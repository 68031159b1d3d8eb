package expr

// skipping returns a condition on a field that is decided for a whole block from the limits of the
// field's values, without reading the field, if these limits are enough.
func skipping(e, field expression, decide func(low, high float64) (truth, ok bool)) expression {
	if field.field == "" {
		return e
	}
	read := e.of
	e.of = func(b *block, active []bool) (column, error) {
		if b.src.can.Bounded != nil {
			low, high, ok := b.src.can.Bounded.Bounds(field.field, b.first, b.first+b.n)
			truth := false
			if ok {
				truth, ok = decide(low, high)
			}
			if ok {
				return literalColumn(value{kind: truthKind, truth: truth}), nil
			}
		}
		return read(b, active)
	}
	return e
}

// decided returns the result of a comparison with a constant if every number between two limits
// has the same result: then no number need be read.
func decided(r relation, constant value, low, high float64) (truth, ok bool) {
	l, h := orderOfConstant(low, constant), orderOfConstant(high, constant)
	if l == unordered || l > h {
		return false, false
	}
	for order := l; order <= h; order++ {
		if r[order] != r[l] {
			return false, false
		}
	}
	return r[l], true
}

// orderOfConstant returns the order of a float and a constant, compared exactly.
func orderOfConstant(x float64, v value) uint8 {
	switch {
	case v.kind != floatKind:
		return flipped(orderFloat(int64(v.bits), v.kind == unsignedKind, x))
	case x < v.float:
		return below
	case x > v.float:
		return above
	case x == v.float:
		return equal
	}
	return unordered
}

// outside reports whether no number of a list lies between two limits.
func outside(list []expression, low, high float64) bool {
	for _, e := range list {
		if orderOfConstant(low, *e.constant) != above && orderOfConstant(high, *e.constant) != below {
			return false
		}
	}
	return true
}
