package store

import (
	"math"

	"github.com/penstock/penstock/tensor"
)

// Moments summarises numbers as they are stored (0 to 255 for uint8). A figure that is too
// large for a float64, as the deviation of values beyond 1e154 can be, is the largest float64.
type Moments struct {
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"` // of the population: divided by n
	// NonFinite counts NaNs and infinities, which the other figures leave out.
	NonFinite int64 `json:"non_finite,omitempty"`
}

// Statistics summarises a field.
type Statistics struct {
	Moments
	Channels []Moments `json:"channels,omitempty"`     // of a field with more than one
	Lengths  *Moments  `json:"lengths,omitempty"`      // of a ragged field: rows a record
	Labels   []int64   `json:"label_counts,omitempty"` // values a class, of a field with Classes
}

// moments accumulates. bytes add up as integers, which no order can change; others
// by the pairwise update of Chan, Golub, LeVeque (1979), in record order. So the result does
// not depend on who computed the parts.
type moments struct {
	n, bad   int64
	min, max float64
	sum, sq  int64   // bytes
	mean, m2 float64 // others
}

func (a *moments) merge(b moments) {
	a.bad += b.bad
	if b.n == 0 {
		return
	}
	if a.n == 0 {
		b.bad = a.bad
		*a = b
		return
	}
	n := float64(a.n + b.n)
	d := b.mean - a.mean
	a.m2 += b.m2 + float64(d*d*(float64(a.n)*float64(b.n)/n))
	if math.IsInf(d, 0) {
		a.mean = float64(a.mean*(float64(a.n)/n)) + float64(b.mean*(float64(b.n)/n))
	} else {
		a.mean += float64(d * (float64(b.n) / n))
	}
	a.sum += b.sum
	a.sq += b.sq
	a.min, a.max = math.Min(a.min, b.min), math.Max(a.max, b.max)
	a.n += b.n
}

// result gives the figures; asBytes says that the values were bytes.
func (a moments) result(asBytes bool) Moments {
	m := Moments{Min: a.min, Max: a.max, NonFinite: a.bad}
	if a.n == 0 {
		return m
	}
	n := float64(a.n)
	if !asBytes {
		m.Mean, m.Std = a.mean, min(math.Sqrt(a.m2/n), math.MaxFloat64)
		return m
	}
	m.Mean = float64(a.sum) / n
	m.Std = math.Sqrt(math.Max(0, float64(a.sq)/n-float64(m.Mean*m.Mean)))
	return m
}

// length is a record of so many rows, for the moments of lengths.
func length(rows int) moments {
	x := float64(rows)
	return moments{n: 1, min: x, max: x, mean: x}
}

func isByte(d tensor.DType) bool { return d == tensor.Uint8 || d == tensor.Bool }
