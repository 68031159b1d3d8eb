// Package subset finds members of a set of whole numbers by their order: which number the i-th member is, and which
// member a number is.
//
// Records of a dataset with deleted records are such a set: users count the records that are left, and files count all
// stored records. An [Index] is made of the bitmap of a manifest. It answers in the time of one cache miss, as it is
// asked for every record of every batch.
package subset

import (
	"math"
	"math/bits"
	"sort"
)

// Index is a set of numbers. While at least two thirds of the numbers around a member are in the set, finding it looks
// at one cache line and branches on none of the bits, so that the CPU looks for several members at once.
// Several goroutines may use it.
type Index struct {
	n      int
	words  []uint64 // number i is bit i%64 of word i/64
	groups []group
	near   []uint16 // of groups of kind isNear, how far each member is from the first one
	far    []uint64 // of groups of kind isFar
}

// group is up to groupSize members that follow each other. If these are less than 192 numbers apart, bit i of bits is
// number first+i, and bit 0 is set. Otherwise bits[0] has the kind, and bits[1] the place where the list of distances
// between the members begins.
type group struct {
	first uint64
	bits  [3]uint64
}

const (
	groupSize = 128
	span      = 64 * 3

	isNear = 2
	isFar  = 4
)

// New returns the set of the bits of words: number i is bit i%64 of word i/64. The words must not be changed.
func New(words []uint64) *Index {
	x := &Index{words: words}
	for at, w := range words {
		ones := bits.OnesCount64(w)
		if next := groupSize * len(x.groups); next < x.n+ones {
			x.groups = append(x.groups, x.group(64*at+selected(w, next-x.n)))
		}
		x.n += ones
	}
	return x
}

// group returns the group that begins with a member.
func (x *Index) group(first int) group {
	g := group{first: uint64(first)}
	ones := 0
	for k := range g.bits {
		g.bits[k] = x.from(first + 64*k)
		ones += bits.OnesCount64(g.bits[k])
	}
	if ones >= groupSize {
		return g
	}
	distances := x.distances(first)
	switch last := distances[len(distances)-1]; {
	case last < span:
		return g
	case last <= math.MaxUint16:
		g.bits = [3]uint64{isNear, uint64(len(x.near))}
		for _, d := range distances {
			x.near = append(x.near, uint16(d))
		}
	default:
		g.bits = [3]uint64{isFar, uint64(len(x.far))}
		x.far = append(x.far, distances...)
	}
	return g
}

// from returns the bits of 64 numbers.
func (x *Index) from(first int) (w uint64) {
	at, shift := first/64, first%64
	if at < len(x.words) {
		w = x.words[at] >> shift
	}
	if at+1 < len(x.words) {
		w |= x.words[at+1] << (64 - shift) // nothing of it if shift is 0
	}
	return w
}

// distances returns how far the members of the group that begins with first are from it.
func (x *Index) distances(first int) []uint64 {
	list := make([]uint64, 0, groupSize)
	at := first / 64
	for w := x.words[at] &^ (1<<(first%64) - 1); ; w = x.words[at] {
		for ; w != 0; w &= w - 1 {
			if list = append(list, uint64(64*at+bits.TrailingZeros64(w)-first)); len(list) == groupSize {
				return list
			}
		}
		if at++; at == len(x.words) {
			return list
		}
	}
}

// Len returns how many members the set has.
func (x *Index) Len() int { return x.n }

// At returns member i.
func (x *Index) At(i int) int {
	g, k := &x.groups[uint(i)/groupSize], i%groupSize
	switch {
	case g.bits[0]&1 != 0:
		return int(g.first) + g.selected(k)
	case g.bits[0] == isNear:
		return int(g.first) + int(x.near[int(g.bits[1])+k])
	}
	return int(g.first + x.far[int(g.bits[1])+k])
}

// selected returns the place of the bit before which exactly k bits are set, without a branch.
func (g *group) selected(k int) int {
	a := bits.OnesCount64(g.bits[0])
	b := a + bits.OnesCount64(g.bits[1])
	inA, inAB := (k-a)>>63, (k-b)>>63 // all ones if it is one of the first a, or b
	word := 2 + inA + inAB
	return 64*word + selected(g.bits[word], k-a&^inA-(b-a)&^inAB)
}

// AppendAt appends members to dst, by their order.
func (x *Index) AppendAt(dst, members []int) []int {
	for _, i := range members {
		dst = append(dst, x.At(i))
	}
	return dst
}

// Before returns how many members are below a number.
func (x *Index) Before(number int) int {
	return sort.Search(x.n, func(i int) bool { return x.At(i) >= number })
}

// Run returns member a, and how many members up to member b follow it as consecutive numbers, itself included.
func (x *Index) Run(a, b int) (first, n int) {
	first = x.At(a)
	for at := first; n < b-a; {
		ones := bits.TrailingZeros64(^x.from(at))
		n, at = n+ones, at+ones
		if ones < 64 {
			break
		}
	}
	return first, min(n, b-a)
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// selected returns the place of the bit of w that is set after k others (S. Vigna, "Broadword implementation of
// rank/select queries", 2008).
func selected(w uint64, k int) int {
	s := w - w>>1&(0x55*eachByte)
	s = s&(0x33*eachByte) + s>>2&(0x33*eachByte)
	s = (s + s>>4) & (0x0f * eachByte) * eachByte // byte i has how many are set up to there
	at := 8 * bits.OnesCount64(((uint64(k)*eachByte|highBits)-s)&highBits)
	k -= int(s << 8 >> at & 0xff)
	return at + int(selectedOfByte[k&7][w>>at&0xff])
}

// selectedOfByte has the results of selected for bytes, by k and byte.
var selectedOfByte = func() (table [8][256]uint8) {
	for b := range 256 {
		k := 0
		for at := range 8 {
			if b>>at&1 == 1 {
				table[k][b] = uint8(at)
				k++
			}
		}
	}
	return table
}()
