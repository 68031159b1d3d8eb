package kernel

import "math"

const (
	weightBits = 22 // fixed-point fraction of a weight, as in Pillow
	weightOne  = 1 << weightBits
	roundHalf  = 1 << (weightBits - 1)
)

// Weights says how one axis of an image is resized: output i is a weighted sum of
// neighboring inputs. It holds the outputs [From, To) only, so that a crop after the resize costs
// nothing. Init fills it, and reuses its memory when called again.
type Weights struct {
	In, Out  int // length of the whole axis before and after
	From, To int // outputs held
	Filter   Filter

	lo, hi int       // inputs of the outputs held
	taps   int       // weights per output: the maximum over all outputs
	start  []int32   // first input of each output
	count  []int32   // inputs of each output, 1 to taps
	k      []int32   // taps weights per output, 22-bit fixed point, zero from count on
	real   []float64 // scratch of Init
	packed packed    // the same for the kernels in assembly
}

// Init computes the weights of outputs [from, to) when an axis of in pixels becomes out
// pixels: Pillow's precompute_coeffs and normalize_coeffs_8bpc, bit for bit. It panics unless
// in and out are positive and 0 <= from < to <= out.
func (w *Weights) Init(in, out, from, to int, f Filter) {
	if in <= 0 || out <= 0 || from < 0 || to <= from || to > out {
		panic("kernel: Weights.Init of an empty or impossible range")
	}
	w.In, w.Out, w.From, w.To, w.Filter = in, out, from, to, f
	n := to - from
	w.start = grow(w.start, n)
	w.count = grow(w.count, n)
	if f == Nearest {
		w.initNearest()
	} else {
		w.initFilter()
	}
	w.lo, w.hi = in, 0
	for i, s := range w.start {
		w.lo, w.hi = min(w.lo, int(s)), max(w.hi, int(s+w.count[i]))
	}
	w.packed.reset()
}

// initNearest accumulates positions as Pillow's ImagingScaleAffine does.
func (w *Weights) initNearest() {
	w.taps = 1
	w.k = grow(w.k, len(w.start))
	step := float64(w.In) / float64(w.Out)
	at := step * 0.5
	for i := range w.To {
		if i >= w.From {
			w.start[i-w.From] = int32(min(int(at), w.In-1))
			w.count[i-w.From] = 1
			w.k[i-w.From] = weightOne
		}
		at += step
	}
}

func (w *Weights) initFilter() {
	scale := float64(w.In) / float64(w.Out)
	wide := max(scale, 1)
	support := float64(filters[w.Filter].support * wide)
	w.taps = 0
	for i := range w.start {
		center := float64((float64(w.From+i) + 0.5) * scale)
		lo := max(int(center-support+0.5), 0)
		hi := min(int(center+support+0.5), w.In)
		w.start[i], w.count[i] = int32(lo), int32(hi-lo)
		w.taps = max(w.taps, hi-lo)
	}
	w.k = grow(w.k, len(w.start)*w.taps)
	w.real = grow(w.real, w.taps)
	for i := range w.start {
		center := float64((float64(w.From+i) + 0.5) * scale)
		w.weigh(w.k[i*w.taps:(i+1)*w.taps], int(w.start[i]), int(w.count[i]), center, 1/wide)
	}
}

// weigh computes the n weights of one output whose center is at an input coordinate.
func (w *Weights) weigh(k []int32, lo, n int, center, narrow float64) {
	w.weighReal(w.real[:n], lo, center, narrow)
	for x, v := range w.real[:n] {
		k[x] = int32(float64(v*weightOne) + math.Copysign(0.5, v))
	}
	clear(k[n:])
}

// weighReal computes the weights in float64, with a sum of 1.
func (w *Weights) weighReal(k []float64, lo int, center, narrow float64) {
	at := filters[w.Filter].at
	sum := 0.0
	for x := range k {
		v := at(float64((float64(x+lo) - center + 0.5) * narrow))
		k[x] = v
		sum += v
	}
	if sum == 0 {
		return
	}
	for x := range k {
		k[x] /= sum
	}
}

// Real returns the weights of output i in float64, which Pillow multiplies pixels of more than 8 bits by, in memory
// that the next call reuses; From <= i < To.
func (w *Weights) Real(i int) []float64 {
	lo, hi := w.Span(i)
	w.real = grow(w.real, hi-lo)
	if w.Filter == Nearest {
		w.real[0] = 1
		return w.real
	}
	scale := float64(w.In) / float64(w.Out)
	w.weighReal(w.real, lo, float64((float64(i)+0.5)*scale), 1/max(scale, 1))
	return w.real
}

// Inputs returns the range [lo, hi) of inputs that the outputs depend on.
func (w *Weights) Inputs() (lo, hi int) { return w.lo, w.hi }

// Span returns the range [lo, hi) of inputs that output i depends on; From <= i < To.
func (w *Weights) Span(i int) (lo, hi int) {
	s := int(w.start[i-w.From])
	return s, s + int(w.count[i-w.From])
}

// Taps returns the most inputs that one output has.
func (w *Weights) Taps() int { return w.taps }

// grow returns s with length n, with its old memory if that suffices. The content is
// arbitrary.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
