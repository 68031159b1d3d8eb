package moments

import (
	"math"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// Meter computes the moments of records as they are stored. It serves one goroutine, and is kept so that
// measuring allocates nothing. The zero value is ready.
type Meter struct {
	bytes  []kernel.Moments // by channel
	buf    [piece]float64
	floats [piece]float32
	taken  [piece]float32
	halves [piece]tensor.Half
	brains [piece]tensor.Brain

	sums, squares [together]float64 // of pieces
}

// piece is how many numbers are summed up before they are merged: few enough to stay in
// the nearest cache while they are looked at twice. together is how many pieces that are side
// by side are summed up by one call at most.
const (
	piece    = kernel.Piece
	together = 64
)

// Measure adds the values of one record, rows of spec, to the moments of the channels. run consecutive elements
// belong to a channel before the next channel starts.
func (m *Meter) Measure(spec tensor.Spec, run int, record []byte, out []Moments) {
	numbers := len(record) / spec.DType.Size()
	if len(out) == 1 {
		run = numbers
	}
	if run == 0 {
		return
	}
	view := func() tensor.View { return tensor.Of(tensor.Spec{DType: spec.DType}, numbers, record) }
	switch spec.DType {
	case tensor.Uint8, tensor.Bool:
		m.measureBytes(record, run, out)
	case tensor.Float16:
		measureFloats(m, m.halves[:], tensor.As[tensor.Half](view()), run, out, halves)
	case tensor.BFloat16:
		measureFloats(m, m.brains[:], tensor.As[tensor.Brain](view()), run, out, brains)
	case tensor.Float32:
		m.measureFloat32s(tensor.As[float32](view()), run, out)
	default:
		for p := cut(numbers, run, len(out)); p.next(); {
			out[p.channel].Merge(Of(m.wide(spec.DType, record[p.first*spec.DType.Size():], p.n, p.stride)))
		}
	}
}

// MeasureEach is Measure for records of one row each, one after the other: out has the moments of the channels of each
// record. Min and Max are the limits of all records, not of each: once all moments are merged, the result is the same.
func (m *Meter) MeasureEach(spec tensor.Spec, run int, records []byte, out []Moments) {
	size := spec.RecordBytes()
	n := len(records) / size
	if elems := size / 4; spec.DType == tensor.Float32 && len(out) == n && elems <= short {
		m.measureShort(tensor.As[float32](tensor.Of(spec, n, records)), elems, out)
		return
	}
	for channels := len(out) / max(n, 1); len(out) > 0; out, records = out[channels:], records[size:] {
		m.Measure(spec, run, records[:size], out[:channels])
	}
}

// short is how many numbers of a record have a lane of kernel.SumF32 each: these are summed up without a call.
const short = 16

// measureShort measures records of n <= short numbers each. The results are equal to momentsOfFloats, bit for bit.
func (m *Meter) measureShort(x []float32, n int, out []Moments) {
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	count := float64(n)
	for i := range out {
		record := x[:n:n]
		x = x[n:]
		var lanes [short]float64
		for k, v := range record {
			lanes[k&(short-1)] = 0 + float64(v) // not -0
		}
		sum := total(&lanes)
		if notFinite(sum) {
			out[i] = m.momentsOfFloats(record)
			if out[i].N > 0 {
				low, high = min(low, float32(out[i].Min)), max(high, float32(out[i].Max))
			}
			continue
		}
		mean := sum / count
		lanes = [short]float64{}
		for k, v := range record {
			low, high = lower(low, v), higher(high, v)
			d := float64(v) - mean
			lanes[k&(short-1)] = float64(d * d)
		}
		out[i] = Moments{N: int64(n), Mean: mean, M2: total(&lanes)}
	}
	for i := range out {
		if out[i].N > 0 {
			out[i].Min, out[i].Max = 0+float64(low), 0+float64(high)
		}
	}
}

// total adds the lanes in halves, as kernel.SumF32 does.
func total(l *[short]float64) float64 {
	a, b, c, d := l[0]+l[8], l[1]+l[9], l[2]+l[10], l[3]+l[11]
	e, f, g, h := l[4]+l[12], l[5]+l[13], l[6]+l[14], l[7]+l[15]
	return ((a + e) + (c + g)) + ((b + f) + (d + h))
}

// lower is min for numbers that are not NaN. Its branch is predicted right for all but the first few numbers.
func lower(a, b float32) float32 {
	if b < a {
		return b
	}
	return a
}

func higher(a, b float32) float32 {
	if b > a {
		return b
	}
	return a
}

// MergeEach merges the numbers of values, of the type of spec, each as Measure does with a record of one number.
func (m *Meter) MergeEach(spec tensor.Spec, values []byte, into *Moments) {
	d := spec.DType
	for size := d.Size(); len(values) > 0; {
		n := min(len(values)/size, piece)
		part := values[:n*size]
		values = values[n*size:]
		if d == tensor.Uint8 || d == tensor.Bool {
			for _, x := range part {
				into.Merge(Moments{N: 1, Sum: int64(x), SumSquares: int64(x) * int64(x), Min: float64(x), Max: float64(x)})
			}
		} else {
			into.mergeEach(m.wide(d, part, n, 1))
		}
	}
}

// wide returns n numbers, at most piece, every stride-th (of 16-bit floats, every number), as float64s that are
// valid until the next call.
func (m *Meter) wide(d tensor.DType, b []byte, n, stride int) []float64 {
	x := m.buf[:n]
	switch d {
	case tensor.Float16:
		widen(x, halves(m.floats[:n], tensor.Elements[tensor.Half](b)))
	case tensor.BFloat16:
		widen(x, brains(m.floats[:n], tensor.Elements[tensor.Brain](b)))
	default:
		tensor.Floats(x, d, b, stride)
	}
	return x
}

// measureBytes adds bytes whose channels change after every run.
func (m *Meter) measureBytes(record []byte, run int, out []Moments) {
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
		out[c].Merge(Moments{
			N: int64(s.N), Sum: int64(s.Sum), SumSquares: int64(s.SumSq), Min: float64(s.Min), Max: float64(s.Max),
		})
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
	if run == 1 { // the channels are interleaved: each is measured separately
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

func widen(dst []float64, src []float32) {
	for i, v := range src[:len(dst)] {
		dst[i] = float64(v)
	}
}

// measureFloats adds numbers that float32 holds, whose channels change after every run. load returns src as
// float32s, in buf where that takes memory.
func measureFloats[T any](m *Meter, taken, record []T, run int, out []Moments,
	load func(buf []float32, src []T) []float32) {
	for p := cut(len(record), run, len(out)); p.next(); {
		src := record[p.first:]
		if p.stride > 1 {
			for i := range p.n {
				taken[i] = src[i*p.stride]
			}
			src = taken
		}
		out[p.channel].Merge(m.momentsOfFloats(load(m.floats[:p.n], src[:p.n])))
	}
}

// measureFloat32s is measureFloats for float32: it takes many pieces at a time.
func (m *Meter) measureFloat32s(record []float32, run int, out []Moments) {
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
func (m *Meter) measureRun(x []float32, out *Moments) {
	for len(x) >= piece {
		n := min(len(x)/piece, together)
		m.measurePieces(x[:n*piece], out)
		x = x[n*piece:]
	}
	if len(x) > 0 {
		out.Merge(m.momentsOfFloats(x))
	}
}

// measurePieces adds whole pieces, at most together of them.
func (m *Meter) measurePieces(x []float32, out *Moments) {
	sums, squares := m.sums[:len(x)/piece], m.squares[:len(x)/piece]
	low, high := kernel.PiecesF32(sums, squares, x)
	if slices.ContainsFunc(sums, notFinite) {
		for ; len(x) > 0; x = x[piece:] {
			out.Merge(m.momentsOfFloats(x[:piece]))
		}
		return
	}
	for i, sum := range sums {
		out.Merge(Moments{N: piece, Min: float64(low), Max: float64(high), Mean: sum / piece, M2: squares[i]})
	}
}

func halves(buf []float32, src []tensor.Half) []float32 {
	kernel.WidenF16(buf, src)
	return buf
}

func brains(buf []float32, src []tensor.Brain) []float32 {
	kernel.WidenBF16(buf, src)
	return buf
}

// momentsOfFloats is Of for float32, whose sums cannot overflow. If a sum is not
// finite, a number is not finite, and Of handles that case.
func (m *Meter) momentsOfFloats(x []float32) Moments {
	sum, low, high := kernel.SumF32(x)
	if notFinite(sum) {
		wide := m.buf[:len(x)]
		widen(wide, x)
		return Of(wide)
	}
	n := int64(len(x))
	mean := sum / float64(n)
	return Moments{N: n, Min: float64(low), Max: float64(high), Mean: mean, M2: kernel.SquaresF32(x, mean)}
}
