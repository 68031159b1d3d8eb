package combine

import "math/bits"

// ranked is a set of numbers as one bit each, in which the number at a place is found by looking at two lines of
// memory.
type ranked struct {
	words []uint64

	// before has, for each group of wordsOfGroup words, how many bits are set before it.
	before []uint32
	// guide has, for each place that is a multiple of placesOfGuide, the group of the number there.
	guide []uint32
}

const (
	wordsOfGroup  = 8 // a line of memory
	placesOfGuide = 512
	mostRanked    = 1<<32 - 1 // numbers, which before counts
)

func newRanked(words []uint64) *ranked {
	s := &ranked{words: words}
	n := 0
	for g := 0; g*wordsOfGroup < len(words); g++ {
		s.before = append(s.before, uint32(n))
		for _, w := range words[g*wordsOfGroup : min((g+1)*wordsOfGroup, len(words))] {
			n += bits.OnesCount64(w)
		}
		for len(s.guide)*placesOfGuide < n {
			s.guide = append(s.guide, uint32(g))
		}
	}
	return s
}

// number returns the number at a place, which exists.
func (s *ranked) number(place int) int {
	g, want := int(s.guide[place/placesOfGuide]), uint32(place)
	last := len(s.before) - 1
	if k := place/placesOfGuide + 1; k < len(s.guide) {
		last = int(s.guide[k])
	}
	for last-g > mostSteps { // the last group that begins at or before the place
		if middle := (g + last + 1) / 2; s.before[middle] <= want {
			g = middle
		} else {
			last = middle - 1
		}
	}
	for g < last && s.before[g+1] <= want {
		g++
	}
	left := int(want - s.before[g])
	for i := g * wordsOfGroup; ; i++ {
		w := s.words[i]
		if n := bits.OnesCount64(w); left >= n {
			left -= n
			continue
		}
		return 64*i + nth(w, left)
	}
}

// nth returns the place of bit i of those that are set in w.
func nth(w uint64, i int) int {
	at := 0
	for size := 32; size > 0; size /= 2 {
		if n := bits.OnesCount64(w & (1<<size - 1)); i >= n {
			i -= n
			w >>= size
			at += size
		}
	}
	return at
}

// following returns how many numbers from one on follow each other, at most most.
func (s *ranked) following(number, most int) (n int) {
	for n < most {
		i := number + n
		if i/64 >= len(s.words) {
			break
		}
		ones := bits.TrailingZeros64(^(s.words[i/64] >> (i % 64)))
		n += ones
		if ones < 64-i%64 {
			break
		}
	}
	return min(n, most)
}
