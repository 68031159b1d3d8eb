package expr

// junction compiles "and" or "or". The right condition is asked only for records that the left one
// does not decide, so that a condition on the left can protect the right one from records for which
// it is an error.
func junction(n *node, left, right expression) (expression, error) {
	for _, e := range []expression{left, right} {
		if err := wantTruth(e); err != nil {
			return e, err
		}
	}
	decides := n.text == "or" // the value of the left one that decides
	e := expression{kindType: kindType{kind: truthKind, list: left.list || right.list}, at: n.at}
	e.of = func(b *block, active []bool) (column, error) {
		x, err := left.of(b, active)
		if err != nil {
			return x, err
		}
		open := active
		if !left.list {
			var some bool
			if open, some = undecided(b, x, active, decides); !some && !e.list {
				return x, nil
			}
		}
		y, err := right.of(b, open)
		if err != nil {
			return y, err
		}
		x, y, count, offsets, err := b.pair(n.at, x, y, left.kindType, right.kindType, open)
		if err != nil {
			return x, err
		}
		out := b.truths.take(count)
		p, q, sp, sq := x.truths, y.truths, x.step(), y.step()
		for i := range out {
			if decides {
				out[i] = p[i*sp] || q[i*sq]
			} else {
				out[i] = p[i*sp] && q[i*sq]
			}
		}
		return column{one: x.one && y.one, truths: out, offsets: offsets}, nil
	}
	return fold(e, left, right)
}

// undecided returns the active records that the left condition has not decided, and whether there
// are any.
func undecided(b *block, x column, active []bool, decides bool) (open []bool, some bool) {
	open = b.truths.take(len(active))
	step := x.step()
	for i, a := range active {
		open[i] = a && x.truths[i*step] != decides
		some = some || open[i]
	}
	return open, some
}

// negation compiles the "not" of a condition.
func negation(n *node, of expression) (expression, error) {
	if err := wantTruth(of); err != nil {
		return of, err
	}
	return fold(mapped(n.at, of, func(b *block, x column) []bool {
		out := b.truths.take(len(x.truths))
		for i, v := range x.truths {
			out[i] = !v
		}
		return out
	}), of)
}

// mapped returns a condition that f computes from each value of an expression.
func mapped(at int, of expression, f func(b *block, x column) []bool) expression {
	return expression{kindType: kindType{kind: truthKind, list: of.list}, at: at,
		of: func(b *block, active []bool) (column, error) {
			x, err := of.of(b, active)
			if err != nil {
				return x, err
			}
			return column{one: x.one, truths: f(b, x), offsets: x.offsets}, nil
		}}
}
