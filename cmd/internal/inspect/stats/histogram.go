package stats

import (
	"math"

	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"
)

// Histogram counts finite values in bins of one width.
type Histogram struct {
	Low    float64 `json:"low"`  // where the first bin begins
	High   float64 `json:"high"` // where the last one ends; it is in the last one
	Counts []int64 `json:"counts"`

	whole bool // bins are of whole numbers, and High is one more than the largest of them
}

// Largest returns the largest value that has a bin.
func (h *Histogram) Largest() float64 {
	if h.whole {
		return h.High - 1
	}
	return h.High
}

// histogramBins is how many bins a histogram has, if its values are not fewer.
const histogramBins = 64

// numbers says whether values are whole numbers.
type numbers bool

const wholeNumbers numbers = true

// newHistogram returns an empty one for values from low to high; those that are whole get bins
// of a whole width where there are few of them.
func newHistogram(low, high float64, of numbers) Histogram {
	bins, whole := histogramBins, of == wholeNumbers && low != high && high-low < histogramBins
	switch {
	case low == high:
		bins = 1
	case whole:
		bins = int(high-low) + 1
		high++
	}
	return Histogram{Low: low, High: high, Counts: make([]int64, bins), whole: whole}
}

// add counts x, NaN and infinities aside. All others must be within the limits.
func (h *Histogram) add(x []float64) {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		h.Counts[h.bin(v)]++
	}
}

// bin returns which bin a finite value is in.
func (h *Histogram) bin(v float64) int {
	bins := len(h.Counts)
	if bins == 1 {
		return 0
	}
	from, all := v-h.Low, h.High-h.Low
	if math.IsInf(all, 0) {
		from, all = v/2-h.Low/2, h.High/2-h.Low/2
	}
	return max(0, min(bins-1, int(from/all*float64(bins))))
}

// byteCounts counts each value that 8 bits can have, by its bits.
type byteCounts [256]int64

// add counts the bytes of b.
func (c *byteCounts) add(b []byte) {
	for _, x := range b {
		c[x]++
	}
}

// ofByte returns the value of 8 bits.
func ofByte(bits int, signed bool) int64 {
	if signed {
		return int64(int8(bits))
	}
	return int64(bits)
}

// moments derives the statistics, which are exact: sums of integers.
func (c *byteCounts) moments(signed bool) moments.Moments {
	m := moments.Moments{Min: math.Inf(1), Max: math.Inf(-1)}
	sum, sq := int64(0), int64(0)
	for bits, n := range c {
		if n == 0 {
			continue
		}
		x := ofByte(bits, signed)
		m.N += n
		sum += n * x
		sq += n * x * x
		m.Min, m.Max = min(m.Min, float64(x)), max(m.Max, float64(x))
	}
	if m.N == 0 {
		return moments.Moments{}
	}
	n := float64(m.N)
	m.Mean = float64(sum) / n
	m.M2 = max(0, float64(sq)/n-float64(m.Mean*m.Mean)) * n
	return m
}

// histogram puts neighboring values together.
func (c *byteCounts) histogram(dtype tensor.DType) Histogram {
	if dtype == tensor.Bool {
		return Histogram{High: 2, Counts: []int64{c[0], sumOf(c[1:])}, whole: true}
	}
	signed := dtype == tensor.Int8
	h := Histogram{High: 256, Counts: make([]int64, histogramBins), whole: true}
	if signed {
		h.Low, h.High = -128, 128
	}
	for bits, n := range c {
		h.Counts[(ofByte(bits, signed)-int64(h.Low))*histogramBins/256] += n
	}
	return h
}

func sumOf(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Width of a bin; of a single value it is 1.
func (h *Histogram) Width() float64 {
	if h.High > h.Low {
		return h.High/float64(len(h.Counts)) - h.Low/float64(len(h.Counts))
	}
	return 1
}
