package sampler

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/penstock/penstock/loader/internal/digest"
)

// Subset is a Sampler of the records that Indices or Ranges name. Inner sets their order.
type Subset struct {
	Indices []int    // record numbers, each as often as it shall come; or
	Ranges  [][2]int // ranges [first, end) of records, none of them empty
	Inner   Sampler  // of the records of the subset; nil means Sequential
}

var _ interface {
	Identifier
	Validator
	Repeater
} = Subset{}

// Epoch returns the order of the named records. It uses the slice Indices without a copy. Ranges
// cost 16 bytes per range in an epoch, and a binary search per record.
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

// Validate refuses a subset with a record that a Source of n records does not have.
func (o Subset) Validate(n int) error {
	if len(o.Indices) > 0 && len(o.Ranges) > 0 {
		return errors.New("Subset: both Indices and Ranges are given; give one")
	}
	if i := slices.IndexFunc(o.Indices, func(r int) bool { return r < 0 || r >= n }); i >= 0 {
		return fmt.Errorf("Subset: index %d is record %d; there are %d records", i, o.Indices[i], n)
	}
	size := len(o.Indices)
	for i, r := range o.Ranges {
		size += r[1] - r[0]
		if r[0] < 0 || r[1] <= r[0] || r[1] > n {
			return fmt.Errorf("Subset: Ranges[%d] is [%d, %d); the Source has %d records", i, r[0], r[1], n)
		}
	}
	return Validate(o.Inner, size)
}

// Repeats reports whether a record may come more than once: because Indices or Ranges name it more
// than once, or because Inner draws with replacement.
func (o Subset) Repeats() bool {
	if Repeats(o.Inner) {
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

// ID returns a digest of the named records, with the inner Sampler.
func (o Subset) ID() string {
	return "subset(" + digest.Of(o.Indices, o.Ranges) + ")/" + ID(o.Inner)
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

func (s subsetSequence) Batches(whole bool) Batches { return BatchesOf(s.Sequence, whole) }

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

func (s rangesSequence) Batches(whole bool) Batches { return BatchesOf(s.Sequence, whole) }

// inner returns the sequence of an inner Sampler; nil means Sequential.
func inner(o Sampler, n int, seed uint64, epoch int) Sequence {
	if o == nil {
		return sequential(n)
	}
	return o.Epoch(n, seed, epoch)
}
