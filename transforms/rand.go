package transforms

// Rand is the random stream of one record: a function of seed, epoch and record and of
// nothing else, so that the same record is augmented the same way by any worker, in any
// order. It is a counter behind a mixer (SplitMix64); it serves one goroutine.
type Rand struct{ state uint64 }

// NewRand returns the stream of a record in an epoch.
func NewRand(seed, epoch, record uint64) Rand {
	return Rand{state: mix(mix(mix(seed)^epoch) ^ record)}
}

// mix is the finaliser of SplitMix64 behind a step of its counter: a bijection in which each
// bit of x moves half of the result's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	v := mix(r.state)
	r.state += 0x9e3779b97f4a7c15
	return v
}

// Float64 returns a number in [0, 1) with 53 random bits.
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Between returns a number in [lo, hi).
func (r *Rand) Between(lo, hi float64) float64 { return lo + float64((hi-lo)*r.Float64()) }

// IntN returns a number in [0, n); n must be positive.
func (r *Rand) IntN(n int) int {
	if n <= 0 {
		panic("transforms: IntN of nothing")
	}
	return int(r.Uint64() % uint64(n)) // biased by less than n/2^64
}
