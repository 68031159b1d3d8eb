package permute

import "math/bits"

// Below maps a random h to [0, m), each value with a probability within 2^-64 of 1/m.
func Below(h, m uint64) uint64 {
	hi, _ := bits.Mul64(h, m)
	return hi
}

// Mix64 is the finaliser of SplitMix64 (Stafford's variant 13): a bijection of 64 bits in
// which every input bit changes every output bit with probability near one half.
func Mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Key returns the i-th of independent 64-bit keys for (seed, epoch). Each key
// depends on all bits of seed and epoch, and Key(a, b) differs from Key(b, a).
func Key(seed uint64, epoch int, i uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15
	s := Mix64(seed + (2*i+1)*golden)
	e := Mix64(uint64(epoch) + (2*i+2)*golden)
	return Mix64(s + bits.RotateLeft64(e, 32) + golden)
}

// Place returns the seed of a place in a program that draws random numbers. Each such place has a number of its own. Seed
// and place are mixed one after the other: their sum would give the place n of seed 1 the numbers of the place n+1 of
// seed 0.
func Place(seed, place uint64) uint64 {
	return Mix64(Mix64(seed+0x9e3779b97f4a7c15) ^ place)
}

// Rand is the SplitMix64 generator (Steele, Lea and Flood, 2014).
type Rand uint64

// Next returns 64 random bits.
func (s *Rand) Next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return Mix64(uint64(*s))
}

// Below returns a number in [0, m), each with equal probability (Lemire, 2019).
func (s *Rand) Below(m uint64) uint64 {
	for {
		hi, lo := bits.Mul64(s.Next(), m)
		if lo >= m || lo >= -m%m {
			return hi
		}
	}
}
