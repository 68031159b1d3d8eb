package expr

import "math"

// Float is a type in which a [Formula] is computed.
type Float interface{ float32 | float64 }

// Evaluator computes a [Formula] over arrays. It reuses its memory for the next arrays, and serves
// one goroutine.
type Evaluator[T Float] struct {
	Fields [][]T // the elements of each of Names of the Formula
	free   [][]T
	n      int
}

// Compute returns the results for n elements. They are valid until the next call, which reuses
// their memory.
func (v *Evaluator[T]) Compute(f *Formula, n int) []T {
	v.n = n
	out, own := v.of(f.root)
	if own {
		v.free = append(v.free, out)
	}
	return out
}

// take returns memory for n elements.
func (v *Evaluator[T]) take() []T {
	for len(v.free) > 0 {
		last := v.free[len(v.free)-1]
		v.free = v.free[:len(v.free)-1]
		if cap(last) >= v.n {
			return last[:v.n]
		}
	}
	return make([]T, v.n)
}

// of returns the values of a node, and whether their memory may be written to. The memory of an
// operand that is not a field becomes the memory of the result.
func (v *Evaluator[T]) of(n *node) (out []T, own bool) {
	switch n.kind {
	case fieldNode:
		return v.Fields[n.index][:v.n], false
	case literal:
		out = v.take()
		for i := range out {
			out[i] = T(n.value.number())
		}
		return out, true
	}
	if n.text == "in" {
		return v.in(n), true
	}
	var args [3][]T
	var mine [3]bool
	for k, a := range n.args {
		args[k], mine[k] = v.of(a)
		if mine[k] && out == nil {
			out, mine[k] = args[k], false
		}
	}
	if out == nil {
		out = v.take()
	}
	apply(n.text, out, args[0], args[1], args[2])
	for k, a := range args {
		if mine[k] {
			v.free = append(v.free, a)
		}
	}
	return out, true
}

// in returns 1 where the first argument equals one of the others, NaN counting as equal to NaN, and 0 elsewhere.
func (v *Evaluator[T]) in(n *node) []T {
	found := v.take()
	clear(found)
	x, mine := v.of(n.args[0])
	for _, a := range n.args[1:] {
		y, own := v.of(a)
		for i := range found {
			if x[i] == y[i] || x[i] != x[i] && y[i] != y[i] {
				found[i] = 1
			}
		}
		if own {
			v.free = append(v.free, y)
		}
	}
	if mine {
		v.free = append(v.free, x)
	}
	return found
}

// apply computes a function or an operator; out may be one of the operands.
func apply[T Float](name string, out, x, y, z []T) {
	switch name {
	case "negate":
		one(out, x, func(x T) T { return -x })
	case "abs":
		one(out, x, func(x T) T { return T(math.Abs(float64(x))) })
	case "sqrt":
		one(out, x, func(x T) T { return T(math.Sqrt(float64(x))) })
	case "exp":
		one(out, x, func(x T) T { return T(math.Exp(float64(x))) })
	case "log":
		one(out, x, func(x T) T { return T(math.Log(float64(x))) })
	case "log1p":
		one(out, x, func(x T) T { return T(math.Log1p(float64(x))) })
	case "not":
		one(out, x, func(x T) T { return truthOf[T](x == 0) })
	case "and":
		for i, v := range x {
			out[i] = truthOf[T](v != 0 && y[i] != 0)
		}
	case "or":
		for i, v := range x {
			out[i] = truthOf[T](v != 0 || y[i] != 0)
		}
	case "where":
		for i := range out {
			if x[i] != 0 {
				out[i] = y[i]
			} else {
				out[i] = z[i]
			}
		}
	case "clip":
		for i := range out {
			out[i] = min(max(x[i], y[i]), z[i])
		}
	case "+", "-", "*", "/", "**", "minimum", "maximum":
		calculate(name, out, x, y, 1, 1)
	default:
		for i, v := range x {
			out[i] = truthOf[T](compare(name, v, y[i]))
		}
	}
}

func one[T Float](out, x []T, f func(T) T) {
	for i, v := range x {
		out[i] = f(v)
	}
}

// truthOf returns 1 for true and 0 for false.
func truthOf[T Float](is bool) T {
	if is {
		return 1
	}
	return 0
}

// power is math.Pow, except that an exponent of 0.5 takes a square root, as NumPy does: the square root of -Inf is NaN,
// where math.Pow(-Inf, 0.5) is +Inf.
func power(x, y float64) float64 {
	if y == 0.5 {
		return math.Sqrt(x)
	}
	return math.Pow(x, y)
}

func compare[T Float](name string, x, y T) bool {
	switch name {
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	case ">=":
		return x >= y
	case "=":
		return x == y
	}
	return x != y
}
