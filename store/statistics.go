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
	a.m2 += b.m2 + d*d*(float64(a.n)*float64(b.n)/n)
	if math.IsInf(d, 0) {
		a.mean = float64(a.mean*(float64(a.n)/n)) + float64(b.mean*(float64(b.n)/n))
	} else {
		a.mean += d * (float64(b.n) / n)
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

// measure adds one record's bytes to the moments of its channels.
func measure(f Field, record []byte, out []moments) {
	channels, run := f.Channels()
	v := tensor.Of(f.Spec, len(record)/f.RecordBytes(), record)
	if channels == 1 {
		run = len(record) / f.DType.Size()
	}
	if run == 0 {
		return
	}
	switch f.DType {
	case tensor.Uint8, tensor.Bool:
		measureUint8(record, channels, run, out)
	case tensor.Int8:
		measureFloat(tensor.As[int8](v), channels, run, out, fromInt[int8])
	case tensor.Uint16:
		measureFloat(tensor.As[uint16](v), channels, run, out, fromInt[uint16])
	case tensor.Int16:
		measureFloat(tensor.As[int16](v), channels, run, out, fromInt[int16])
	case tensor.Uint32:
		measureFloat(tensor.As[uint32](v), channels, run, out, fromInt[uint32])
	case tensor.Int32:
		measureFloat(tensor.As[int32](v), channels, run, out, fromInt[int32])
	case tensor.Uint64:
		measureFloat(tensor.As[uint64](v), channels, run, out, fromInt[uint64])
	case tensor.Int64:
		measureFloat(tensor.As[int64](v), channels, run, out, fromInt[int64])
	case tensor.Float16:
		measureFloat(tensor.As[tensor.Half](v), channels, run, out, func(h tensor.Half) float64 { return float64(h.Float32()) })
	case tensor.BFloat16:
		measureFloat(tensor.As[tensor.Brain](v), channels, run, out, func(b tensor.Brain) float64 { return float64(b.Float32()) })
	case tensor.Float32:
		measureFloat(tensor.As[float32](v), channels, run, out, func(x float32) float64 { return float64(x) })
	case tensor.Float64:
		measureFloat(tensor.As[float64](v), channels, run, out, func(x float64) float64 { return x })
	}
}

func fromInt[T int8 | uint16 | int16 | uint32 | int32 | uint64 | int64](x T) float64 {
	return float64(x)
}

func measureUint8(record []byte, channels, run int, out []moments) {
	for c := range channels {
		var hist [256]int64
		for at := c * run; at < len(record); at += channels * run {
			for _, x := range record[at : at+run] {
				hist[x]++
			}
		}
		out[c].merge(histogramMoments(&hist))
	}
}

func histogramMoments(hist *[256]int64) moments {
	m := moments{min: 255}
	for x, n := range hist {
		if n == 0 {
			continue
		}
		m.n += n
		m.sum += n * int64(x)
		m.sq += n * int64(x) * int64(x)
		m.min, m.max = math.Min(m.min, float64(x)), float64(x)
	}
	return m
}

// measureFloat takes two passes over a channel: the mean, then the squares around it.
func measureFloat[T any](record []T, channels, run int, out []moments, value func(T) float64) {
	for c := range channels {
		m := moments{min: math.Inf(1), max: math.Inf(-1)}
		sum := 0.0
		each := func(f func(x float64)) {
			for at := c * run; at < len(record); at += channels * run {
				for _, x := range record[at : at+run] {
					f(value(x))
				}
			}
		}
		each(func(x float64) {
			if math.IsInf(x, 0) || math.IsNaN(x) {
				m.bad++
				return
			}
			m.n++
			sum += x
			m.min, m.max = math.Min(m.min, x), math.Max(m.max, x)
		})
		if m.n > 0 {
			m.mean = sum / float64(m.n)
		}
		if math.IsInf(sum, 0) || math.IsNaN(sum) {
			m.mean = 0
			each(func(x float64) {
				if !math.IsInf(x, 0) && !math.IsNaN(x) {
					m.mean += x / float64(m.n)
				}
			})
		}
		each(func(x float64) {
			if d := x - m.mean; !math.IsInf(x, 0) && !math.IsNaN(x) {
				m.m2 += float64(d * d)
			}
		})
		out[c].merge(m)
	}
}
