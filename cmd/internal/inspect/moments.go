package inspect

import (
	"math"

	"github.com/penstock/penstock/store"
)

// moments accumulates numbers. Parts are joined by the pairwise update of Chan, Golub,
// LeVeque (1979), so their order is part of the result.
type moments struct {
	n, bad             int64 // finite numbers, and others
	min, max, mean, m2 float64
}

// momentsOf takes two passes: the mean, then the squares around it.
func momentsOf(x []float64) moments {
	m := moments{min: math.Inf(1), max: math.Inf(-1)}
	sum := 0.0
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			m.bad++
			continue
		}
		m.n++
		m.min, m.max = min(m.min, v), max(m.max, v)
		sum += v
	}
	if m.n == 0 {
		return moments{bad: m.bad}
	}
	m.mean = sum / float64(m.n)
	for _, v := range x {
		if d := v - m.mean; d*0 == 0 {
			m.m2 += float64(d * d)
		}
	}
	return m
}

func (m *moments) merge(o moments) {
	bad := m.bad + o.bad
	switch {
	case o.n == 0:
	case m.n == 0:
		*m = o
	default:
		n, d := float64(m.n+o.n), o.mean-m.mean
		m.m2 += o.m2 + float64(d*d*(float64(m.n)*float64(o.n)/n))
		m.mean += float64(d * (float64(o.n) / n))
		m.min, m.max = min(m.min, o.min), max(m.max, o.max)
		m.n += o.n
	}
	m.bad = bad
}

// result gives the figures, zero where there are no finite numbers.
func (m moments) result() store.Moments {
	out := store.Moments{NonFinite: m.bad}
	if m.n > 0 {
		out.Min, out.Max, out.Mean, out.Std = m.min, m.max, m.mean, math.Sqrt(m.m2/float64(m.n))
	}
	return out
}
