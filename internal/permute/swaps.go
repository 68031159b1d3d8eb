package permute

import "math/bits"

// Reused is a permutation of [0, n) by a key, in memory that the next one takes: Fill of a mixture needs several and may
// not allocate. A large n has the Feistel network of [New]. A small n would need a table there, and goes through a round of
// Hoang, Morris and Rogaway ("An enciphering scheme based on a card shuffle", 2012) at a time: x is swapped with k-x mod
// n, or not, as a random bit of the pair says. That is as good for small n as for large, and needs 6 rounds a bit of n.
type Reused struct {
	n      uint64
	large  feistel // if n > maxTable; in place of:
	rounds int
	k, h   [6 + 6*12]uint64 // of each round: where x is swapped to, and what the bit is drawn by
}

// Prepare makes the permutation of n, which is from 1 to 2^62, and a key.
func (s *Reused) Prepare(n, key uint64) {
	if s.n = n; n > maxTable {
		s.large = makeFeistel(int(n), key, 0)
		return
	}
	s.rounds = 6 * bits.Len64(n)
	for r := range s.rounds {
		s.h[r] = Mix64(key + uint64(r+1)*0x9e3779b97f4a7c15)
		s.k[r] = Below(s.h[r], n)
	}
}

// Map replaces each x, several at a time: a single x is a chain of operations that wait for each other.
func (s *Reused) Map(x []int) {
	if s.n > maxTable {
		s.large.Map(x)
		return
	}
	for ; len(x) >= lanes; x = x[lanes:] {
		a, b, c, d := uint64(x[0]), uint64(x[1]), uint64(x[2]), uint64(x[3])
		for r := range s.rounds {
			k, h := s.k[r]+s.n, s.h[r]
			a, b, c, d = swapped(a, k, h, s.n), swapped(b, k, h, s.n), swapped(c, k, h, s.n), swapped(d, k, h, s.n)
		}
		x[0], x[1], x[2], x[3] = int(a), int(b), int(c), int(d)
	}
	for i := range x {
		at := uint64(x[i])
		for r := range s.rounds {
			at = swapped(at, s.k[r]+s.n, s.h[r], s.n)
		}
		x[i] = int(at)
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

// Swap is the image of one x < n by the rounds of [Reused], for any n. It needs no memory.
func Swap(x, n, key uint64) uint64 {
	for r := range uint64(6 * bits.Len64(n)) {
		h := Mix64(key + (r+1)*0x9e3779b97f4a7c15)
		x = swapped(x, Below(h, n)+n, h, n)
	}
	return x
}
