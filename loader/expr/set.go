package expr

import (
	"iter"
	"math/bits"
)

// Set is a subset of the records of a Source, with one bit per record. It never changes, and
// several goroutines may use it at once.
type Set struct {
	n, count int
	words    []uint64
}

// NewSet returns the Set of the bits of words, of n records: record i is bit i%64 of word i/64. The words must not be
// changed.
func NewSet(n int, words []uint64) *Set {
	s := &Set{n: n, words: words}
	for _, w := range words {
		s.count += bits.OnesCount64(w)
	}
	return s
}

// Len returns the number of records of the Source.
func (s *Set) Len() int { return s.n }

// Count returns the number of records in the Set.
func (s *Set) Count() int { return s.count }

// Words returns the bits: record i is bit i%64 of word i/64. They must not be changed.
func (s *Set) Words() []uint64 { return s.words }

// Has reports whether a record is in the Set.
func (s *Set) Has(record int) bool { return s.words[record/64]>>(record%64)&1 == 1 }

// All returns the numbers of the records in the Set, in ascending order.
func (s *Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(64*i + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}
