package crash

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// State is a state that a crash can leave.
type State struct {
	*Tree
	Step int    // the program had done as many
	Cut  bool   // the power was cut; false: the program was killed
	What string // how it came about
	Mark string // the last mark that the program printed before
}

// States returns what every kill leaves, between any two steps and at the end, and for each
// also what power cuts there can leave: with nothing that was not durable, with all names and
// nothing else of it, with all but names, with all but the changes of one file, and that many at
// random. No state comes twice.
func (l *Log) States(random int, seed uint64) iter.Seq[State] {
	type seen struct {
		mark string
		sum  uint64
	}
	known := make(map[seen]bool)
	return func(yield func(State) bool) {
		for n := range l.Len() + 1 {
			for s := range l.statesAt(n, random, rand.New(rand.NewPCG(seed, uint64(n)))) {
				key := seen{s.Mark, s.sum()}
				if known[key] {
					continue
				}
				known[key] = true
				if !yield(s) {
					return
				}
			}
		}
	}
}

func (l *Log) statesAt(n, random int, rng *rand.Rand) iter.Seq[State] {
	before := "the end"
	if n < l.Len() {
		before = l.Describe(n)
	}
	killed := func(t *Tree, how string, args ...any) State {
		return State{Tree: t, Step: n, What: fmt.Sprintf("%s before step %d of %d (%s)", fmt.Sprintf(how, args...), n,
			l.Len(), before), Mark: l.Mark(n)}
	}
	cut := func(t *Tree, how string, args ...any) State {
		s := killed(t, "power cut, "+how, args...)
		s.Cut = true
		return s
	}
	always := func(b bool) func(int) bool { return func(int) bool { return b } }
	return func(yield func(State) bool) {
		if !yield(killed(l.Killed(n), "killed")) ||
			!yield(cut(l.Cut(n, 0, always(false)), "all lost")) ||
			!yield(cut(l.Cut(n, 1, always(false)), "only names kept")) ||
			!yield(cut(l.Cut(n, 0, always(true)), "only names lost")) {
			return
		}
		for _, lost := range l.unsynced(n) {
			t := l.Cut(n, 1, func(file int) bool { return file != lost })
			if !yield(cut(t, "only changes of %s lost", l.nodes[lost].path)) {
				return
			}
		}
		for k := range random {
			part, often := rng.Float64(), rng.Float64()
			t := l.Cut(n, part, func(int) bool { return rng.Float64() < often })
			if !yield(cut(t, "%.2f of names kept, of writes %.2f (%d)", part, often, k)) {
				return
			}
		}
	}
}
