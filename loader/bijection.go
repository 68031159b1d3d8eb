package loader

import (
	"math"
	"math/bits"
)

const (
	// rounds of the bijection. Two make a single position exactly uniform if the round
	// functions are random; each further two divide what relation is left between a pair of
	// positions by sqrt(n). Over 60,000 permutations of 4,225 records, six rounds keep 2.1 %
	// more neighbours than chance does, five standard deviations; eight rounds 0.2 %, less
	// than half of one.
	rounds = 8

	// maxTable is the largest n that is permuted by a table: there, sqrt(n) is too small for
	// few rounds, and for the smallest n no number of them reaches every permutation.
	maxTable = 4096

	// tableKey is the number of the key of tables: no round of the bijection has it.
	tableKey = 1 << 16
)

// bijection is a permutation of [0, n) in constant memory: a Feistel network over
// Z_a x Z_b, the generalisation of Black and Rogaway ("Ciphers with arbitrary finite
// domains", 2002, section 5), with a*b the least product of a = floor(sqrt(n)) that covers
// n. A value that falls outside [0, n) goes through again (cycle walking); as a*b-n < a,
// fewer than one in sqrt(n) does.
type bijection struct {
	n, a, b uint64
	keys    [rounds]uint64
}

func newBijection(n int, seed uint64, epoch int) *bijection {
	a := uint64(math.Sqrt(float64(n)))
	f := &bijection{n: uint64(n), a: a, b: (uint64(n) + a - 1) / a}
	for i := range f.keys {
		f.keys[i] = epochKey(seed, epoch, uint64(i))
	}
	return f
}

func (f *bijection) Len() int { return int(f.n) }

func (f *bijection) Fill(pos int, dst []int) {
	x := uint64(pos)
	for ; len(dst) >= lanes; x, dst = x+lanes, dst[lanes:] {
		f.several(x, dst)
	}
	for i := range dst {
		dst[i] = int(f.at(x + uint64(i)))
	}
}

// lanes is how many positions are computed at a time: one alone is a chain of multiplications
// that wait for each other.
const lanes = 8

// several sets the first elements of dst to the records at positions x, x+1, ...
func (f *bijection) several(x uint64, dst []int) {
	var hi, lo [lanes]uint64
	for j := range lanes {
		hi[j], lo[j] = (x+uint64(j))/f.b, (x+uint64(j))%f.b
	}
	for i := 0; i < rounds; i += 2 {
		for j := range lanes {
			hi[j] = addMod(hi[j], below(mix64(lo[j]+f.keys[i]), f.a), f.a)
		}
		for j := range lanes {
			lo[j] = addMod(lo[j], below(mix64(hi[j]+f.keys[i+1]), f.b), f.b)
		}
	}
	for j := range lanes {
		r := hi[j]*f.b + lo[j]
		if r >= f.n {
			r = f.at(r)
		}
		dst[j] = int(r)
	}
}

// at returns the record at position x < n.
func (f *bijection) at(x uint64) uint64 {
	for x = f.once(x); x >= f.n; {
		x = f.once(x)
	}
	return x
}

// once permutes [0, a*b).
func (f *bijection) once(x uint64) uint64 {
	hi, lo := x/f.b, x%f.b
	for i := 0; i < rounds; i += 2 {
		hi = addMod(hi, below(mix64(lo+f.keys[i]), f.a), f.a)
		lo = addMod(lo, below(mix64(hi+f.keys[i+1]), f.b), f.b)
	}
	return hi*f.b + lo
}

// addMod returns x+y mod m for x and y below m <= 2^63.
func addMod(x, y, m uint64) uint64 {
	x += y
	if x >= m {
		x -= m
	}
	return x
}

// below maps a random h to [0, m), each value with a probability within 2^-64 of 1/m.
func below(h, m uint64) uint64 {
	hi, _ := bits.Mul64(h, m)
	return hi
}

// mix64 is the finaliser of SplitMix64 (Stafford's variant 13): a bijection of 64 bits in
// which every input bit changes every output bit with probability near one half.
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// epochKey returns the i-th of independent 64-bit keys for (seed, epoch). Each depends on
// all bits of both, and on which is which.
func epochKey(seed uint64, epoch int, i uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15
	s := mix64(seed + (2*i+1)*golden)
	e := mix64(uint64(epoch) + (2*i+2)*golden)
	return mix64(s + bits.RotateLeft64(e, 32) + golden)
}

// table is a permutation of few records, held in full.
type table []uint16

// newTable shuffles [0, n) after Fisher and Yates, every permutation with equal
// probability.
func newTable(n int, seed uint64, epoch int) table {
	t := make(table, n)
	r := splitMix(epochKey(seed, epoch, tableKey))
	for i := range t {
		j := r.below(uint64(i + 1))
		t[i], t[j] = t[j], uint16(i)
	}
	return t
}

func (t table) Len() int { return len(t) }

func (t table) Fill(pos int, dst []int) {
	for i, v := range t[pos : pos+len(dst)] {
		dst[i] = int(v)
	}
}

// splitMix is the SplitMix64 generator (Steele, Lea and Flood, 2014).
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix64(uint64(*s))
}

// below returns a number in [0, m), each with equal probability (Lemire, 2019).
func (s *splitMix) below(m uint64) uint64 {
	for {
		hi, lo := bits.Mul64(s.next(), m)
		if lo >= m || lo >= -m%m {
			return hi
		}
	}
}
