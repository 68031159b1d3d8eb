package preprocess

import "math/bits"

// permutation is a random order of [0, n) in constant memory: a Feistel network over the
// smallest even number of bits that holds n, walked until it lands below n. It depends on n
// and seed alone.
type permutation struct {
	n    uint64
	half uint // bits of one half
	keys [8]uint64
}

func newPermutation(n int64, seed uint64) *permutation {
	p := &permutation{n: uint64(n), half: max(1, uint(bits.Len64(uint64(n)-1)+1)/2)}
	for i := range p.keys {
		seed += 0x9e3779b97f4a7c15
		p.keys[i] = mix(seed)
	}
	return p
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// at returns which of [0, n) comes at place i.
func (p *permutation) at(i int64) int64 {
	x := uint64(i)
	mask := uint64(1)<<p.half - 1
	for {
		l, r := x>>p.half, x&mask
		for _, k := range p.keys {
			l, r = r, l^mix(r^k)&mask
		}
		if x = l<<p.half | r; x < p.n {
			return int64(x)
		}
	}
}
