package loader

import (
	"math/bits"
	"time"
)

// histogram counts durations in eight buckets a factor of two.
type histogram struct {
	counts [64 * 8]uint32
	n      int
	max    time.Duration
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(uint64(max(0, d)))]++
	h.n++
	h.max = max(h.max, d)
}

// bucket returns the number of the bucket of ns: 0 to 7 are exact.
func bucket(ns uint64) int {
	if ns < 8 {
		return int(ns)
	}
	shift := bits.Len64(ns) - 4
	return (shift+1)*8 + int(ns>>shift&7)
}

// ceiling returns the largest duration of a bucket.
func ceiling(b int) time.Duration {
	if b < 8 {
		return time.Duration(b)
	}
	shift := b/8 - 1
	return time.Duration((uint64(b%8)+9)<<shift - 1)
}

// quantile returns a duration that a share q of all does not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(q * float64(h.n))
	for b, c := range h.counts {
		if rank -= int(c); rank < 0 {
			return min(ceiling(b), h.max)
		}
	}
	return h.max
}

func (h *histogram) quantiles() Quantiles {
	return Quantiles{h.quantile(0.50), h.quantile(0.95), h.quantile(0.99), h.max}
}
