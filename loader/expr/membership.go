package expr

import (
	"math"
	"slices"
)

// in compiles the test whether a value is in a list of constants.
func (c *compiler) in(n *node) (expression, error) {
	args, err := c.all(n.args)
	if err != nil {
		return expression{}, err
	}
	of, list := args[0], args[1:]
	if slices.ContainsFunc(list, func(e expression) bool { return e.number() }) {
		of = counted(of)
	}
	for i, e := range list {
		if e.constant == nil {
			return e, failf(e.at, "a list after in has numbers and strings; write x = %s or ...", n.args[i+1].text)
		}
		switch {
		case of.label() && e.kind == textKind:
			class := slices.Index(of.classes, e.constant.text)
			if class < 0 {
				return e, noClass(e.at, e.constant.text, of.classes)
			}
			e = constantOf(e.at, value{kind: integerKind, bits: uint64(class)})
		case of.number():
			e = counted(e)
		}
		list[i] = e
		if fits := e.number() && of.number() || e.kind == of.kind; !fits {
			return e, incomparable(e.at, of.kindType, e.kindType)
		}
	}
	var test expression
	switch {
	case of.kind == textKind:
		test = inTexts(n, of, list)
	case of.kind == truthKind:
		test = inTruths(n, of, list)
	case of.kind == floatKind:
		test = inFloats(n, of, list)
	default:
		test = inIntegers(n, of, list)
	}
	if of.number() && of.constant == nil {
		test = skipping(test, of, func(low, high float64) (truth, ok bool) { return false, outside(list, low, high) })
	}
	return fold(test, of)
}

func inTexts(n *node, of expression, list []expression) expression {
	set := make(map[string]bool, len(list))
	for _, e := range list {
		set[e.constant.text] = true
	}
	return mapped(n.at, of, func(b *block, x column) []bool {
		out := b.truths.take(len(x.texts.offsets) - 1)
		for i := range out {
			out[i] = set[string(x.texts.at(i))]
		}
		return out
	})
}

func inTruths(n *node, of expression, list []expression) expression {
	set := make(map[bool]bool, len(list))
	for _, e := range list {
		set[e.constant.truth] = true
	}
	return mapped(n.at, of, func(b *block, x column) []bool {
		out := b.truths.take(len(x.truths))
		for i, v := range x.truths {
			out[i] = set[v]
		}
		return out
	})
}

// inFloats tests whether a float equals a number of a list. NaN equals a NaN in the list, as in
// pandas' isin.
func inFloats(n *node, of expression, list []expression) expression {
	set, nan := make(map[float64]bool, len(list)), false
	for _, e := range list {
		v := *rounded(e, of.dtype).constant
		f := v.float
		switch v.kind {
		case integerKind:
			f = float64(int64(v.bits))
		case unsignedKind:
			f = float64(v.bits)
		}
		if v.kind == floatKind || orderFloat(int64(v.bits), v.kind == unsignedKind, f) == equal {
			set[f] = true
		}
		nan = nan || f != f
	}
	return mapped(n.at, of, func(b *block, x column) []bool {
		out := b.truths.take(len(x.floats))
		for i, v := range x.floats {
			out[i] = set[v] || nan && v != v
		}
		return out
	})
}

// inIntegers tests whether an integer equals a number of a list.
func inIntegers(n *node, of expression, list []expression) expression {
	set := make(map[int64]bool, len(list)) // by their bits
	for _, e := range list {
		v := *e.constant
		if v.kind == floatKind {
			if v.float != math.Trunc(v.float) || v.float < -1<<63 || v.float >= 1<<64 {
				continue
			}
			v.kind, v.bits = integerKind, uint64(int64(v.float))
			if v.float >= 1<<63 {
				v.kind, v.bits = unsignedKind, uint64(v.float)
			}
		}
		if int64(v.bits) < 0 && v.kind != of.kind {
			continue // a number below 0 among those without a sign, or one from 2^63 on among those with one
		}
		set[int64(v.bits)] = true
	}
	return mapped(n.at, of, func(b *block, x column) []bool {
		out := b.truths.take(len(x.integers))
		for i, v := range x.integers {
			out[i] = set[v]
		}
		return out
	})
}
