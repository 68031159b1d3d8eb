package permute

import "math/bits"

// Swaps permutes [0, n) by key, a round of Hoang, Morris and Rogaway ("An enciphering scheme
// based on a card shuffle", 2012) at a time: x is swapped with k-x mod n, or not, as a random bit
// of the pair says. It is as good for small n as for large, and needs 6 rounds a bit of n where
// the Feistel network needs 8 in all.
type Swaps struct {
	n      uint64
	rounds int
	k, h   [6 + 6*62]uint64 // of each round: where x is swapped to, and what the bit is drawn by
}

// Prepare makes the rounds for n, which is from 1 to 2^62, and a key.
func (s *Swaps) Prepare(n, key uint64) {
	s.n, s.rounds = n, 6*bits.Len64(n)
	for r := range s.rounds {
		s.h[r] = Mix64(key + uint64(r+1)*0x9e3779b97f4a7c15)
		s.k[r] = Below(s.h[r], n)
	}
}

// Permute replaces each x, several at a time: a single x is a chain of operations that wait for
// each other.
func (s *Swaps) Permute(x []uint64) {
	for ; len(x) >= lanes; x = x[lanes:] {
		a, b, c, d := x[0], x[1], x[2], x[3]
		for r := range s.rounds {
			k, h := s.k[r]+s.n, s.h[r]
			a, b, c, d = swapped(a, k, h, s.n), swapped(b, k, h, s.n), swapped(c, k, h, s.n), swapped(d, k, h, s.n)
		}
		x[0], x[1], x[2], x[3] = a, b, c, d
	}
	for i := range x {
		for r := range s.rounds {
			x[i] = swapped(x[i], s.k[r]+s.n, s.h[r], s.n)
		}
	}
}

// swapped is a round with k larger by n.
func swapped(x, k, h, n uint64) uint64 {
	other := k - x
	if other >= n {
		other -= n
	}
	if Mix64(max(x, other)+h)&1 == 1 {
		x = other
	}
	return x
}

// Swap is the image of one x < n under the permutation that [Swaps] makes for n and key. It needs no memory.
func Swap(x, n, key uint64) uint64 {
	for r := range uint64(6 * bits.Len64(n)) {
		h := Mix64(key + (r+1)*0x9e3779b97f4a7c15)
		x = swapped(x, Below(h, n)+n, h, n)
	}
	return x
}
