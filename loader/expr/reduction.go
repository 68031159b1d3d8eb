package expr

import (
	"cmp"

	"github.com/penstock/penstock/internal/permute"
)

// reduction compiles min, max or mean over the values of each record. A record without values is an
// error, since no number would be right.
func (c *compiler) reduction(n *node) (expression, error) {
	of, err := c.compile(n.args[0])
	if err != nil {
		return of, err
	}
	if !of.number() {
		return of, failf(of.at, "%s has no %s, which is of numbers", of.kindType, n.text)
	}
	if !of.list {
		return of, failf(of.at, "%s is over the values of a record, and this is one; leave %s out", n.text, n.text)
	}
	e := expression{kindType: kindType{kind: of.kind, dtype: of.dtype}, at: n.at}
	if n.text == "mean" {
		e.kindType = kindType{kind: floatKind}
	}
	e.of = func(b *block, active []bool) (column, error) {
		x, err := of.of(b, active)
		if err != nil {
			return x, err
		}
		for i, a := range active {
			if a && x.offsets[i] == x.offsets[i+1] {
				return x, recordError(b, i, n.at, "%s of no values; write len(x) > 0 and ... before it", n.text)
			}
		}
		switch {
		case n.text == "mean":
			return column{floats: means(b.floats.take(b.n), b.asFloats(x, of.kind), x.offsets)}, nil
		case of.kind == floatKind:
			return column{floats: extremes(b.floats.take(b.n), x.floats, x.offsets, floatBefore(n.text))}, nil
		}
		return column{integers: extremes(b.integers.take(b.n), x.integers, x.offsets, integerBefore(n.text, of.kind))}, nil
	}
	return e, nil
}

func means(dst, values []float64, offsets []int64) []float64 {
	for i := range dst {
		some, sum := values[offsets[i]:offsets[i+1]], 0.0
		for _, v := range some {
			sum += v
		}
		dst[i] = sum / float64(len(some))
	}
	return dst
}

// extremes returns, for each record, the value that comes before all other values: the smallest
// or the largest. Records without values have 0.
func extremes[T int64 | float64](dst, values []T, offsets []int64, before func(a, b T) bool) []T {
	for i := range dst {
		some := values[offsets[i]:offsets[i+1]]
		if len(some) == 0 {
			dst[i] = 0
			continue
		}
		best := some[0]
		for _, v := range some[1:] {
			if before(v, best) {
				best = v
			}
		}
		dst[i] = best
	}
	return dst
}

// floatBefore returns the order of floats in which NaN comes first, so that min and max of values
// with a NaN are NaN, as in NumPy.
func floatBefore(name string) func(a, b float64) bool {
	if name == "min" {
		return func(a, b float64) bool { return a < b || a != a && b == b }
	}
	return func(a, b float64) bool { return a > b || a != a && b == b }
}

func integerBefore(name string, k kind) func(a, b int64) bool {
	sign := 1
	if name == "min" {
		sign = -1
	}
	if k == unsignedKind {
		return func(a, b int64) bool { return cmp.Compare(uint64(a), uint64(b)) == sign }
	}
	return func(a, b int64) bool { return cmp.Compare(a, b) == sign }
}

// quantifier compiles any or all over the values of each record.
func (c *compiler) quantifier(n *node) (expression, error) {
	of, err := c.compile(n.args[0])
	if err != nil {
		return of, err
	}
	if err := wantTruth(of); err != nil {
		return of, err
	}
	if !of.list {
		return of, failf(of.at, "%s is over the values of a record, and this is one; leave %s out", n.text, n.text)
	}
	wanted := n.text == "any"
	return expression{kindType: kindType{kind: truthKind}, at: n.at, of: func(b *block, active []bool) (column, error) {
		x, err := of.of(b, active)
		if err != nil {
			return x, err
		}
		out := b.truths.take(b.n)
		for i := range out {
			out[i] = !wanted
			for _, v := range x.truths[x.offsets[i]:x.offsets[i+1]] {
				if v == wanted {
					out[i] = wanted
					break
				}
			}
		}
		return column{truths: out}, nil
	}}, nil
}

// sampleKey separates the draws of samples from the orders of epochs with the same seed.
const sampleKey = 1 << 17

// sample compiles a random part of the records: the records whose hash is below a fraction of the
// range of hashes. The hash is of the seed and the record's number or a value, so that the same
// records are chosen in every run, and a larger fraction contains the records of a smaller
// fraction.
func (c *compiler) sample(n *node) (expression, error) {
	args, err := c.all(n.args)
	if err != nil {
		return expression{}, err
	}
	fraction, ok := 0.0, false
	if v := args[0].constant; v != nil {
		switch v.kind {
		case floatKind:
			fraction, ok = v.float, true
		case integerKind:
			fraction, ok = float64(int64(v.bits)), true
		}
	}
	if !ok || !(fraction >= 0 && fraction <= 1) {
		return args[0], failf(args[0].at, "the first argument of sample is a number from 0 to 1")
	}
	seed := uint64(0)
	if len(args) > 1 {
		v := args[1].constant
		if v == nil || v.kind != integerKind && v.kind != unsignedKind {
			return args[1], failf(args[1].at, "the second argument of sample is a whole number, the seed")
		}
		seed = v.bits
	}
	key, limit := permute.Key(seed, 0, sampleKey), uint64(fraction*(1<<63)) // of hashes of 63 bits
	e := expression{kindType: kindType{kind: truthKind}, at: n.at}
	if len(args) < 3 {
		e.of = func(b *block, _ []bool) (column, error) {
			out := b.truths.take(b.n)
			for i := range out {
				out[i] = permute.Mix64(key^uint64(b.first+i))>>1 < limit
			}
			return column{truths: out}, nil
		}
		return e, nil
	}
	of := args[2]
	if of.list || of.constant != nil || of.kind == floatKind || of.kind == truthKind {
		return of, failf(of.at, "the third argument of sample is a field with one whole number, label or text a record")
	}
	e.of = func(b *block, active []bool) (column, error) {
		x, err := of.of(b, active)
		if err != nil {
			return x, err
		}
		out := b.truths.take(b.n)
		for i := range out {
			h := uint64(0)
			if of.kind == textKind {
				h = hashOf(x.texts.at(i))
			} else {
				h = uint64(x.integers[i])
			}
			out[i] = permute.Mix64(key^h)>>1 < limit
		}
		return column{truths: out}, nil
	}
	return e, nil
}

// hashOf is the 64-bit FNV-1a hash of a text: a hash of maphash would differ from process to
// process.
func hashOf(text []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range text {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
