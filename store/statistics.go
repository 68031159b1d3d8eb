package store

import (
	"math"

	"github.com/penstock/penstock/internal/vec"
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

// meter measures records. It serves one goroutine, and is kept so that measuring allocates
// nothing.
type meter struct {
	bytes []vec.Moments // by channel
	buf   [piece]float64
}

// piece is how many numbers are summed up before they are merged: few enough to stay in
// the nearest cache while they are looked at twice.
const piece = 512

// measure adds one record's bytes to the moments of its channels.
func (m *meter) measure(f Field, record []byte, out []moments) {
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
		m.measureBytes(record, run, out)
	case tensor.Int8:
		measureNumbers(m, tensor.As[int8](v), run, out, widen)
	case tensor.Uint16:
		measureNumbers(m, tensor.As[uint16](v), run, out, widen)
	case tensor.Int16:
		measureNumbers(m, tensor.As[int16](v), run, out, widen)
	case tensor.Uint32:
		measureNumbers(m, tensor.As[uint32](v), run, out, widen)
	case tensor.Int32:
		measureNumbers(m, tensor.As[int32](v), run, out, widen)
	case tensor.Uint64:
		measureNumbers(m, tensor.As[uint64](v), run, out, widen)
	case tensor.Int64:
		measureNumbers(m, tensor.As[int64](v), run, out, widen)
	case tensor.Float16:
		measureNumbers(m, tensor.As[tensor.Half](v), run, out, widenFloat16)
	case tensor.BFloat16:
		measureNumbers(m, tensor.As[tensor.Brain](v), run, out, widenFloat16)
	case tensor.Float32:
		measureNumbers(m, tensor.As[float32](v), run, out, widen)
	case tensor.Float64:
		measureNumbers(m, tensor.As[float64](v), run, out, widen)
	}
}

// measureBytes adds bytes whose channels change after every run.
func (m *meter) measureBytes(record []byte, run int, out []moments) {
	if len(m.bytes) < len(out) {
		m.bytes = make([]vec.Moments, len(out))
	}
	sums := m.bytes[:len(out)]
	clear(sums)
	if run == 1 {
		vec.AddPixels(sums, record)
	} else {
		for c := 0; len(record) > 0; c = (c + 1) % len(sums) {
			sums[c].Add(record[:run])
			record = record[run:]
		}
	}
	for c, s := range sums {
		out[c].merge(moments{
			n: int64(s.N), sum: int64(s.Sum), sq: int64(s.SumSq), min: float64(s.Min), max: float64(s.Max),
		})
	}
}

// measureNumbers adds numbers whose channels change after every run. load makes float64s of
// every stride-th of src.
func measureNumbers[T any](m *meter, record []T, run int, out []moments, load func(dst []float64, src []T, stride int)) {
	stride := 1
	if run == 1 { // the channels take turns: each is looked at by itself
		stride, run = len(out), len(record)/len(out)
	}
	for c := 0; c*run < len(record); c++ {
		channel := &out[c%len(out)]
		for i := 0; i < run; i += piece {
			x := m.buf[:min(run-i, piece)]
			if stride == 1 {
				load(x, record[c*run+i:], 1)
			} else {
				load(x, record[i*stride+c:], stride)
			}
			channel.merge(momentsOf(x))
		}
	}
}

func widen[T int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64](dst []float64, src []T, stride int) {
	for i := range dst {
		dst[i] = float64(src[i*stride])
	}
}

func widenFloat16[T interface{ Float32() float32 }](dst []float64, src []T, stride int) {
	for i := range dst {
		dst[i] = float64(src[i*stride].Float32())
	}
}

// momentsOf takes two passes: the mean, then the squares around it. It may change x.
func momentsOf(x []float64) moments {
	sum := sumOf(x)
	bad := 0
	if math.IsInf(sum, 0) || math.IsNaN(sum) { // of one of them, or of their size
		bad = len(x)
		x = finite(x)
		bad -= len(x)
		sum = sumOf(x)
	}
	m := moments{bad: int64(bad), n: int64(len(x))}
	if m.n == 0 {
		return m
	}
	m.min, m.max = limits(x)
	m.mean = sum / float64(m.n)
	if math.IsInf(sum, 0) {
		m.mean = 0
		for _, v := range x {
			m.mean += v / float64(m.n)
		}
	}
	m.m2 = squaresAround(m.mean, x)
	return m
}

// sumOf adds in four lanes, as the processor does additions that do not wait for each
// other.
func sumOf(x []float64) float64 {
	var lanes [4]float64
	for ; len(x) >= 4; x = x[4:] {
		lanes[0] += x[0]
		lanes[1] += x[1]
		lanes[2] += x[2]
		lanes[3] += x[3]
	}
	for i, v := range x {
		lanes[i] += v
	}
	return lanes[0] + lanes[1] + (lanes[2] + lanes[3])
}

// squaresAround sums (v-mean)^2, in lanes.
func squaresAround(mean float64, x []float64) float64 {
	var lanes [4]float64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := x[0]-mean, x[1]-mean, x[2]-mean, x[3]-mean
		lanes[0] += float64(a * a)
		lanes[1] += float64(b * b)
		lanes[2] += float64(c * c)
		lanes[3] += float64(d * d)
	}
	for i, v := range x {
		d := v - mean
		lanes[i] += float64(d * d)
	}
	return lanes[0] + lanes[1] + (lanes[2] + lanes[3])
}

// limits returns the least and the greatest.
func limits(x []float64) (low, high float64) {
	low, high = x[0], x[0]
	for _, v := range x {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	return low, high
}

// finite moves the finite numbers of x to its front.
func finite(x []float64) []float64 {
	n := 0
	for _, v := range x {
		if v*0 == 0 {
			x[n] = v
			n++
		}
	}
	return x[:n]
}
