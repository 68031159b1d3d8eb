package stats

import (
	"math"

	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"
)

// Histogram counts finite values in bins of equal width.
type Histogram struct {
	Low    float64 `json:"low"`  // where the first bin begins
	High   float64 `json:"high"` // where the last bin ends; High itself is counted in it
	Counts []int64 `json:"counts"`

	whole bool // values are integers, and High is one more than the largest of them
}

// Largest returns the largest value that belongs into a bin.
func (h *Histogram) Largest() float64 {
	if h.whole {
		return h.High - 1
	}
	return h.High
}

// histogramBins is the number of bins, unless there are fewer integers to count.
const histogramBins = 64

// numbers says whether values are integers.
type numbers bool

const wholeNumbers numbers = true

// newHistogram returns an empty histogram for values from low to high. At most 64 different
// integers get a bin each: with bins of a fractional width, some bins would have room for two
// integers and look like peaks.
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

// add counts the values of x, which must be within the limits. NaN and infinities are left out.
func (h *Histogram) add(x []float64) {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		h.Counts[h.bin(v)]++
	}
}

// bin returns the index of the bin of a finite value. If the range is larger than any float64,
// everything is halved first.
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

// byteCounts counts how often each of the 256 values of a byte occurs.
type byteCounts [256]int64

// add counts the bytes of b.
func (c *byteCounts) add(b []byte) {
	for _, x := range b {
		c[x]++
	}
}

// ofByte returns the number that a byte stands for, as int8 or uint8.
func ofByte(bits int, signed bool) int64 {
	if signed {
		return int64(int8(bits))
	}
	return int64(bits)
}

// moments returns the statistics of the counted values. The sums are integers, so that mean and
// variance do not depend on the order of the records.
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

// histogram joins 4 neighboring values into one bin. A bool has a bin for each value.
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

// sumOf returns the sum of counts.
func sumOf(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Width returns the width of a bin, 1 for a histogram of a single value. The limits are divided
// before they are subtracted, because their difference may be infinite.
func (h *Histogram) Width() float64 {
	if h.High > h.Low {
		return h.High/float64(len(h.Counts)) - h.Low/float64(len(h.Counts))
	}
	return 1
}
