package store

import (
	"github.com/penstock/penstock/internal/moments"
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

// momentsOf returns the figures of what was accumulated; of bytes if dtype is one.
func momentsOf(a moments.Moments, dtype tensor.DType) Moments {
	m := Moments{Min: a.Min, Max: a.Max, NonFinite: a.NonFinite}
	if isByte(dtype) {
		m.Mean, m.Std = a.OfBytes()
	} else {
		m.Mean, m.Std = a.Mean, a.Std()
	}
	return m
}

func isByte(d tensor.DType) bool { return d == tensor.Uint8 || d == tensor.Bool }
