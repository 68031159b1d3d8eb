package combine

import "github.com/penstock/penstock/loader/filter"

// ascending is numbers in ascending order, two bytes each: those of a block are so far from its first one. A number is
// found without a branch, by looking at two places in memory.
type ascending struct {
	firsts []int
	after  []uint16
}

// placesOfBlock is how many numbers have a first one in common.
const placesOfBlock = 64

// newAscending returns the numbers of a Set; nil if those of a block are too far apart.
func newAscending(set *filter.Set) *ascending {
	a := &ascending{
		firsts: make([]int, 0, (set.Count()+placesOfBlock-1)/placesOfBlock), after: make([]uint16, 0, set.Count()),
	}
	first := 0
	for i := range set.All() {
		if len(a.after)%placesOfBlock == 0 {
			first = i
			a.firsts = append(a.firsts, first)
		}
		if i-first > 1<<16-1 {
			return nil
		}
		a.after = append(a.after, uint16(i-first))
	}
	return a
}

// number returns the number at a place.
func (a *ascending) number(place int) int {
	return a.firsts[place/placesOfBlock] + int(a.after[place])
}

// following returns how many numbers from a place on, up to place end, follow each other.
func (a *ascending) following(place, end int) int {
	number, n := a.number(place), 1
	for place+n < end && a.number(place+n) == number+n {
		n++
	}
	return n
}
