package store

import (
	"math"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// meter measures records. It serves one goroutine, and is kept so that measuring allocates
// nothing.
type meter struct {
	bytes  []kernel.Moments // by channel
	buf    [piece]float64
	floats [piece]float32
	taken  [piece]float32
	halves [piece]tensor.Half
	brains [piece]tensor.Brain

	sums, squares [together]float64 // of pieces
}

// piece is how many numbers are summed up before they are merged: few enough to stay in
// the nearest cache while they are looked at twice. together is how many pieces that lie side
// by side are summed up by one call at most.
const (
	piece    = kernel.Piece
	together = 64
)

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
		measureFloats(m, m.halves[:], tensor.As[tensor.Half](v), run, out, halves)
	case tensor.BFloat16:
		measureFloats(m, m.brains[:], tensor.As[tensor.Brain](v), run, out, brains)
	case tensor.Float32:
		m.measureFloat32s(tensor.As[float32](v), run, out)
	case tensor.Float64:
		measureNumbers(m, tensor.As[float64](v), run, out, widen)
	}
}

// measureBytes adds bytes whose channels change after every run.
func (m *meter) measureBytes(record []byte, run int, out []moments) {
	if len(m.bytes) < len(out) {
		m.bytes = make([]kernel.Moments, len(out))
	}
	sums := m.bytes[:len(out)]
	clear(sums)
	if run == 1 {
		kernel.AddPixels(sums, record)
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
	for p := cut(len(record), run, len(out)); p.next(); {
		x := m.buf[:p.n]
		load(x, record[p.first:], p.stride)
		out[p.channel].merge(momentsOf(x))
	}
}

// pieces goes through the numbers of a record, piece by piece. next has to be called first.
type pieces struct {
	numbers, run, channels int // channels change after every run
	at, within             int // the next piece is of run number at, from there on

	channel  int
	first, n int // this piece: n numbers from the first on ...
	stride   int // ... every stride-th
}

func cut(numbers, run, channels int) pieces {
	p := pieces{numbers: numbers, run: run, channels: channels, stride: 1}
	if run == 1 { // the channels take turns: each is looked at by itself
		p.stride, p.run = channels, numbers/channels
	}
	return p
}

func (p *pieces) next() bool {
	if p.within == p.run {
		p.at, p.within = p.at+1, 0
	}
	if p.at*p.run >= p.numbers {
		return false
	}
	p.channel = p.at % p.channels
	p.first, p.n = p.at*p.run+p.within, min(p.run-p.within, piece)
	if p.stride > 1 {
		p.first = p.within*p.stride + p.at
	}
	p.within += p.n
	return true
}

func widen[T int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64](dst []float64, src []T, stride int) {
	for i := range dst {
		dst[i] = float64(src[i*stride])
	}
}

// measureFloats is measureNumbers for numbers that float32 holds. load returns src as
// float32s, in buf where that takes memory.
func measureFloats[T any](m *meter, taken, record []T, run int, out []moments, load func(buf []float32, src []T) []float32) {
	for p := cut(len(record), run, len(out)); p.next(); {
		src := record[p.first:]
		if p.stride > 1 {
			for i := range p.n {
				taken[i] = src[i*p.stride]
			}
			src = taken
		}
		out[p.channel].merge(m.momentsOfFloats(load(m.floats[:p.n], src[:p.n])))
	}
}

// measureFloat32s is measureFloats for float32, of which it takes many pieces at a time.
func (m *meter) measureFloat32s(record []float32, run int, out []moments) {
	if run < piece {
		measureFloats(m, m.taken[:], record, run, out, float32s)
		return
	}
	for c := 0; len(record) > 0; c = (c + 1) % len(out) {
		m.measureRun(record[:run], &out[c])
		record = record[run:]
	}
}

func float32s(_, src []float32) []float32 { return src }

// measureRun adds numbers of one channel.
func (m *meter) measureRun(x []float32, out *moments) {
	for len(x) >= piece {
		n := min(len(x)/piece, together)
		m.measurePieces(x[:n*piece], out)
		x = x[n*piece:]
	}
	if len(x) > 0 {
		out.merge(m.momentsOfFloats(x))
	}
}

// measurePieces adds whole pieces, at most together of them.
func (m *meter) measurePieces(x []float32, out *moments) {
	sums, squares := m.sums[:len(x)/piece], m.squares[:len(x)/piece]
	low, high := kernel.PiecesF32(sums, squares, x)
	if slices.ContainsFunc(sums, notFinite) {
		for ; len(x) > 0; x = x[piece:] {
			out.merge(m.momentsOfFloats(x[:piece]))
		}
		return
	}
	for i, sum := range sums {
		out.merge(moments{n: piece, min: float64(low), max: float64(high), mean: sum / piece, m2: squares[i]})
	}
}

func notFinite(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) }

func halves(buf []float32, src []tensor.Half) []float32 {
	kernel.WidenF16(buf, src)
	return buf
}

func brains(buf []float32, src []tensor.Brain) []float32 {
	kernel.WidenBF16(buf, src)
	return buf
}

// momentsOfFloats is momentsOf for float32, whose sums cannot overflow: with one that is
// not finite, momentsOf sorts it out.
func (m *meter) momentsOfFloats(x []float32) moments {
	sum, low, high := kernel.SumF32(x)
	if notFinite(sum) {
		wide := m.buf[:len(x)]
		widen(wide, x, 1)
		return momentsOf(wide)
	}
	n := int64(len(x))
	mean := sum / float64(n)
	return moments{n: n, min: float64(low), max: float64(high), mean: mean, m2: kernel.SquaresF32(x, mean)}
}

// momentsOf takes two passes: the mean, then the squares around it. It may change x.
func momentsOf(x []float64) moments {
	sum := sumOf(x)
	bad := 0
	if notFinite(sum) { // of one of them, or of their size
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
