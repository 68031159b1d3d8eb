package expr

import "math/bits"

// arithmetic returns the sum, difference, product, quotient, power, minimum or maximum of two numbers.
func arithmetic(n *node, left, right expression, as ...string) (expression, error) {
	op := n.text
	if as != nil {
		op = as[0]
	}
	for _, e := range []expression{left, right} {
		if !e.number() {
			return e, failf(e.at, "%s is not a number, which %s needs", e.kindType, op)
		}
	}
	e := expression{kindType: kindType{kind: integerKind, list: left.list || right.list}, at: n.at}
	if left.kind == floatKind || right.kind == floatKind || op == "/" || op == "**" {
		e.kind = floatKind
	}
	e.of = func(b *block, active []bool) (column, error) {
		x, y, count, offsets, err := b.operands(n.at, left, right, active)
		if err != nil {
			return column{}, err
		}
		out := column{one: x.one && y.one, offsets: offsets}
		if e.kind == floatKind {
			out.floats = b.floats.take(count)
			calculate(op, out.floats, b.asFloats(x, left.kind), b.asFloats(y, right.kind), x.step(), y.step())
			return out, nil
		}
		out.integers = b.integers.take(count)
		sum := integers{b: b, at: n.at, op: op, active: active, offsets: offsets, signedX: left.kind == integerKind,
			signedY: right.kind == integerKind}
		return out, sum.calculate(out.integers, x.integers, y.integers, x.step(), y.step())
	}
	return fold(e, left, right)
}

// asFloats returns numbers as float64; integers that are too long are rounded.
func (b *block) asFloats(c column, k kind) []float64 {
	if k == floatKind {
		return c.floats
	}
	out := b.floats.take(len(c.integers))
	for i, x := range c.integers {
		if k == unsignedKind {
			out[i] = float64(uint64(x))
		} else {
			out[i] = float64(x)
		}
	}
	return out
}

func calculate[T Float](op string, dst, x, y []T, sx, sy int) {
	switch op {
	case "+":
		for i := range dst {
			dst[i] = x[i*sx] + y[i*sy]
		}
	case "-":
		for i := range dst {
			dst[i] = x[i*sx] - y[i*sy]
		}
	case "*":
		for i := range dst {
			dst[i] = T(x[i*sx] * y[i*sy]) // a conversion, so that no compiler fuses it with a sum
		}
	case "/":
		for i := range dst {
			dst[i] = x[i*sx] / y[i*sy]
		}
	case "**":
		for i := range dst {
			dst[i] = T(power(float64(x[i*sx]), float64(y[i*sy])))
		}
	case "minimum":
		for i := range dst {
			dst[i] = min(x[i*sx], y[i*sy])
		}
	case "maximum":
		for i := range dst {
			dst[i] = max(x[i*sx], y[i*sy])
		}
	}
}

// integers computes with integers of 64 bits. An overflow is an error of its record, unless the
// record is not active.
type integers struct {
	b                *block
	at               int
	op               string
	active           []bool
	offsets          []int64
	signedX, signedY bool
}

func (s *integers) calculate(dst, x, y []int64, sx, sy int) error {
	for i := range dst {
		p, q, ok := x[i*sx], y[i*sy], true
		if !s.signedX && p < 0 || !s.signedY && q < 0 {
			ok = false
		} else {
			dst[i], ok = exact(s.op, p, q)
		}
		if ok {
			continue
		}
		record := 0
		if len(dst) > 1 || s.b.n == 1 {
			record = recordAt(s.offsets, i)
		}
		if s.active[record] {
			return recordError(s.b, record, s.at, "%s %s %s overflows 64 bits; make one of them a float: 1.0 * x",
				text64(p, s.signedX), s.op, text64(q, s.signedY))
		}
	}
	return nil
}

// exact returns the result of an operation, and whether the result fits into 64 bits.
func exact(op string, p, q int64) (r int64, ok bool) {
	switch op {
	case "+":
		r = p + q
		return r, (p^r)&(q^r) >= 0
	case "-":
		r = p - q
		return r, (p^q)&(p^r) >= 0
	case "minimum":
		return min(p, q), true
	case "maximum":
		return max(p, q), true
	}
	r = p * q
	hi, lo := bits.Mul64(magnitude(p), magnitude(q))
	if negative := (p < 0) != (q < 0); negative {
		return r, hi == 0 && lo <= 1<<63
	}
	return r, hi == 0 && lo < 1<<63
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// elementwise returns a function of one or two numbers.
func (c *compiler) elementwise(n *node) (expression, error) {
	args, err := c.all(n.args)
	if err != nil {
		return expression{}, err
	}
	of := args[0]
	if !of.number() {
		return of, failf(of.at, "%s is not a number, which %s needs", of.kindType, n.text)
	}
	switch {
	case len(args) == 2:
		return arithmetic(n, of, args[1])
	case n.text == "abs" && of.kind != floatKind: // exact, or an error
		negative, err := arithmetic(n, constantOf(n.at, value{kind: integerKind}), of, "-")
		if err != nil {
			return negative, err
		}
		return arithmetic(n, of, negative, "maximum")
	}
	e := expression{kindType: kindType{kind: floatKind, list: of.list}, at: n.at}
	e.of = func(b *block, active []bool) (column, error) {
		x, err := of.of(b, active)
		if err != nil {
			return x, err
		}
		numbers := b.asFloats(x, of.kind)
		out := column{one: x.one, offsets: x.offsets, floats: b.floats.take(len(numbers))}
		apply(n.text, out.floats, numbers, nil, nil)
		return out, nil
	}
	return fold(e, of)
}

// clipped returns the function that limits a number to the range of two others, as minimum(maximum(x,
// low), high).
func (c *compiler) clipped(n *node) (expression, error) {
	low := &node{kind: call, at: n.at, text: "maximum", args: n.args[:2]}
	return c.elementwise(&node{kind: call, at: n.at, text: "minimum", args: []*node{low, n.args[2]}})
}

// where returns an error: filters choose by "and" and "or".
func (c *compiler) where(n *node) (expression, error) {
	return expression{}, failf(n.at, "where is for derived fields; write a and x > 0 or not a and y > 0")
}
