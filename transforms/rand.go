package transforms

import "math"

// Rand is the random stream of one record: a function of seed, epoch and record and of nothing
// else, so that a record is augmented in the same way by any worker, in any order, and after a
// resume. Rand is a counter that goes through a mixer (SplitMix64). It is a value of 8 bytes that
// is made without an allocation. It serves one goroutine.
type Rand struct{ state uint64 }

// NewRand returns the stream of a record in an epoch.
func NewRand(seed, epoch, record uint64) Rand {
	return Rand{state: mix(mix(mix(seed)^epoch) ^ record)}
}

// mix is one step of SplitMix64: a bijection in which each bit of x flips half of the result's
// bits. Consecutive records therefore have unrelated streams.
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

// Shuffle permutes the elements of s.
func (r *Rand) Shuffle(s []int) {
	for i := len(s) - 1; i > 0; i-- {
		j := r.IntN(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}

// Normal returns a normally distributed number with mean 0 and deviation 1 (Box and Muller). It
// always draws two numbers, so that the position in the stream does not depend on the values.
func (r *Rand) Normal() float64 {
	radius := math.Sqrt(-2 * math.Log(1-r.Float64()))
	return radius * math.Cos(2*math.Pi*r.Float64())
}

// Beta returns a number in [0, 1] of the beta distribution with both parameters a > 0.
func (r *Rand) Beta(a float64) float64 {
	x, y := r.logGamma(a), r.logGamma(a)
	return 1 / (1 + math.Exp(y-x)) // x / (x+y), of logarithms as small a would underflow
}

// logGamma returns the logarithm of a gamma-distributed number (Marsaglia and Tsang 2000; for a < 1
// with their boost by u^(1/a)). The logarithm exists where the number itself would underflow.
func (r *Rand) logGamma(a float64) float64 {
	boost := 0.0
	if a < 1 {
		boost = math.Log(1-r.Float64()) / a
		a++
	}
	d := a - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.Normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < x*x/2+d-float64(d*v)+float64(d*math.Log(v)) {
			return math.Log(d*v) + boost
		}
	}
}
