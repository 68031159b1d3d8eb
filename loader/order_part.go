package loader

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sort"
)

// Subset is an Order over some of the records: those that Indices or Ranges name. Inner says
// in which order they come.
type Subset struct {
	Indices []int    // record numbers, each as often as it shall come; or
	Ranges  [][2]int // ranges [first, end) of records, none of them empty
	Inner   Order    // of the records of the subset; nil means Sequential
}

// Epoch returns the order of the records that are named. Of Indices it keeps the slice;
// Ranges cost 16 bytes a range in an epoch, and a binary search a record.
func (o Subset) Epoch(_ int, seed uint64, epoch int) Sequence {
	if len(o.Ranges) == 0 {
		return subsetSequence{inner(o.Inner, len(o.Indices), seed, epoch), o.Indices}
	}
	s := rangesSequence{ends: make([]int, len(o.Ranges)), ranges: o.Ranges}
	n := 0
	for i, r := range o.Ranges {
		n += r[1] - r[0]
		s.ends[i] = n
	}
	s.Sequence = inner(o.Inner, n, seed, epoch)
	return s
}

// Validate reports what cannot be a subset of n records.
func (o Subset) Validate(n int) error {
	if len(o.Indices) > 0 && len(o.Ranges) > 0 {
		return errors.New("Subset: both Indices and Ranges are given; give one")
	}
	if i := outside(o.Indices, n); i >= 0 {
		return fmt.Errorf("Subset: Indices[%d] is record %d; the Source has %d records", i, o.Indices[i], n)
	}
	size := len(o.Indices)
	for i, r := range o.Ranges {
		size += r[1] - r[0]
		if r[0] < 0 || r[1] <= r[0] || r[1] > n {
			return fmt.Errorf("Subset: Ranges[%d] is [%d, %d); the Source has %d records", i, r[0], r[1], n)
		}
	}
	return validateOrder(o.Inner, size)
}

// Repeats reports whether a record may come more than once: because it is named more than
// once, or because Inner draws with replacement.
func (o Subset) Repeats() bool {
	if repeats(o.Inner) {
		return true
	}
	indices := slices.Sorted(slices.Values(o.Indices))
	ranges := slices.SortedFunc(slices.Values(o.Ranges), func(a, b [2]int) int { return a[0] - b[0] })
	for i := 1; i < len(ranges); i++ {
		if ranges[i][0] < ranges[i-1][1] {
			return true
		}
	}
	return len(slices.Compact(indices)) < len(o.Indices)
}

// ID returns a digest of the records that are named, and the inner order.
func (o Subset) ID() string {
	return "subset(" + digest(o.Indices, o.Ranges) + ")/" + orderID(o.Inner)
}

type subsetSequence struct {
	Sequence
	indices []int
}

func (s subsetSequence) Fill(pos int, dst []int) {
	s.Sequence.Fill(pos, dst)
	for i, k := range dst {
		dst[i] = s.indices[k]
	}
}

type rangesSequence struct {
	Sequence
	ends   []int // how many records the ranges up to each have
	ranges [][2]int
}

func (s rangesSequence) Fill(pos int, dst []int) {
	s.Sequence.Fill(pos, dst)
	for i, k := range dst {
		r := sort.SearchInts(s.ends, k+1)
		dst[i] = s.ranges[r][1] - (s.ends[r] - k)
	}
}

// Split is an Order over a random part of the records: those whose places in a permutation
// by Seed lie in [From, To) of its length. Parts with the same Seed and with ranges that
// meet are disjoint, and no record is between them: {0, 0.9} and {0.9, 1} are a training and a
// validation set, the same in every epoch and in every process. It needs no memory for it.
type Split struct {
	Seed     uint64  // of the permutation; has nothing to do with Options.Seed
	From, To float64 // 0 <= From < To <= 1
	Inner    Order   // of the records of the part; nil means Sequential
}

// Epoch returns the order of the records of the part.
func (o Split) Epoch(n int, seed uint64, epoch int) Sequence {
	from, to := o.bounds(n)
	return splitSequence{inner(o.Inner, to-from, seed, epoch), Shuffle{}.permutation(n, o.Seed, splitEpoch), from}
}

// splitEpoch is the number of the permutation that divides: no epoch that counts from 0.
const splitEpoch = -1 << 62

func (o Split) bounds(n int) (from, to int) {
	return int(math.RoundToEven(float64(n) * o.From)), int(math.RoundToEven(float64(n) * o.To))
}

// Validate reports a range that is none, or that holds no record of n.
func (o Split) Validate(n int) error {
	if !(o.From >= 0 && o.From < o.To && o.To <= 1) {
		return fmt.Errorf("Split: [%v, %v) is no part of [0, 1)", o.From, o.To)
	}
	from, to := o.bounds(n)
	if from == to && n > 0 {
		return fmt.Errorf("Split: [%v, %v) of %d records is empty", o.From, o.To, n)
	}
	return validateOrder(o.Inner, to-from)
}

// Repeats reports whether Inner draws with replacement.
func (o Split) Repeats() bool { return repeats(o.Inner) }

// ID names the part and the inner order.
func (o Split) ID() string {
	return fmt.Sprintf("split(%d,%v,%v)/%s", o.Seed, o.From, o.To, orderID(o.Inner))
}

type splitSequence struct {
	Sequence
	places permutation
	from   int
}

func (s splitSequence) Fill(pos int, dst []int) {
	s.Sequence.Fill(pos, dst)
	for i := range dst {
		dst[i] += s.from
	}
	s.places.each(dst)
}

// inner returns the sequence of an inner order, with nil for Sequential.
func inner(o Order, n int, seed uint64, epoch int) Sequence {
	if o == nil {
		return sequential(n)
	}
	return o.Epoch(n, seed, epoch)
}

// validator is what an Order implements that can be wrong.
type validator interface {
	// Validate reports what makes the order unusable with a Source of n records.
	Validate(n int) error
}

func validateOrder(o Order, n int) error {
	if v, ok := o.(validator); ok {
		return v.Validate(n)
	}
	return nil
}

// identified is what an Order or a Transform implements that has parameters which change
// what it does: State then knows one from the other.
type identified interface {
	ID() string
}

// orderID returns what State calls an order.
func orderID(o Order) string {
	switch o := o.(type) {
	case nil, Sequential:
		return "sequential"
	case Shuffle:
		return "shuffle"
	case identified:
		return o.ID()
	}
	return fmt.Sprintf("%T", o)
}

// digest returns 16 hex digits over what fmt prints of values.
func digest(values ...any) string {
	h := fnv.New64a()
	for _, v := range values {
		fmt.Fprintf(h, "%v;", v)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
