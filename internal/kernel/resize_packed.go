//go:build (amd64 || arm64) && !purego

package kernel

// packed holds the weights as the kernels read them: for each output, two int32 for each pair
// of its inputs, and for gray rows as many for each eight. packPair and packEighth know which.
type packed struct {
	rows    []int32
	start   []int32 // first input of an output's window in rows
	columns []int32
	gray    []eighths
	grayAt  []int32 // first input of an output's window in gray
	state   struct{ rows, columns, gray packState }
}

type packState uint8

const (
	notPacked packState = iota
	canUse
	cannotUse
)

func (p *packed) reset() {
	p.state.rows, p.state.columns, p.state.gray = notPacked, notPacked, notPacked
}

func (w *Weights) pairs() int { return (w.taps + 1) / 2 }

// packRows fills rows. All windows have the same length, so that some are moved left to end
// within the inputs; they begin with weights of zero then.
func (w *Weights) packRows() bool {
	p := &w.packed
	if p.state.rows != notPacked {
		return p.state.rows == canUse
	}
	window := 2 * w.pairs()
	if w.hi-w.lo < window {
		p.state.rows = cannotUse
		return false
	}
	p.state.rows = canUse
	p.start = grow(p.start, len(w.start))
	p.rows = grow(p.rows, len(w.start)*window)
	for i, s := range w.start {
		at := min(int(s), w.hi-window)
		p.start[i] = int32(at)
		w.packOutput(p.rows[i*window:][:window], i, int(s)-at)
	}
	return true
}

// packColumns fills columns.
func (w *Weights) packColumns() {
	p := &w.packed
	if p.state.columns != notPacked {
		return
	}
	p.state.columns = canUse
	window := 2 * w.pairs()
	p.columns = grow(p.columns, len(w.start)*window)
	for i := range w.start {
		w.packOutput(p.columns[i*window:][:window], i, 0)
	}
}

// packOutput writes the weights of output i with skip zeros before them.
func (w *Weights) packOutput(to []int32, i, skip int) {
	k := w.k[i*w.taps:][:w.count[i]]
	weight := func(j int) int32 {
		if j -= skip; j >= 0 && j < len(k) {
			return k[j]
		}
		return 0
	}
	for j := 0; j < len(to); j += 2 {
		to[j], to[j+1] = packPair(weight(j), weight(j+1))
	}
}

// packGray fills gray, like packRows.
func (w *Weights) packGray() bool {
	p := &w.packed
	if p.state.gray != notPacked {
		return p.state.gray == canUse
	}
	chunks := w.chunks()
	if w.hi-w.lo < 8*chunks {
		p.state.gray = cannotUse
		return false
	}
	p.state.gray = canUse
	p.grayAt = grow(p.grayAt, len(w.start))
	p.gray = grow(p.gray, len(w.start)*chunks)
	clear(p.gray)
	for i, s := range w.start {
		at := min(int(s), w.hi-8*chunks)
		p.grayAt[i] = int32(at)
		to := p.gray[i*chunks:][:chunks]
		for j, v := range w.k[i*w.taps:][:w.count[i]] {
			j += int(s) - at
			packEighth(&to[j/8], j%8, v)
		}
	}
	return true
}

func (w *Weights) chunks() int { return (w.taps + 7) / 8 }

// rowsFast resizes rows and returns how many.
func (w *Weights) rowsFast(dst []byte, dstStride int, src []byte, srcStride, rows, step, c, x0 int) int {
	switch {
	case !useKernels:
		return 0
	case c == 3 && step <= 4 && w.packRows():
		return w.byFour(w.rows4, dst, dstStride, src, srcStride, rows, step, x0)
	case c == 1 && step == 1 && w.packGray():
		return w.byFour(w.gray4, dst, dstStride, src, srcStride, rows, step, x0)
	}
	return 0
}

// byFour calls f for four rows at a time. If the last rows are fewer than four, the last call
// repeats rows of the call before.
func (w *Weights) byFour(f func(dst []byte, dstStride int, src []byte, srcStride, step, x0 int),
	dst []byte, dstStride int, src []byte, srcStride, rows, step, x0 int) int {
	if rows < 4 {
		f(dst, 0, src, 0, step, x0)
		return 1
	}
	for r := 0; r < rows; r += 4 {
		r = min(r, rows-4)
		f(dst[r*dstStride:], dstStride, src[r*srcStride:], srcStride, step, x0)
	}
	return rows
}

// gray4 resizes four rows. With strides of 0 the four rows are the same row.
func (w *Weights) gray4(dst []byte, dstStride int, src []byte, srcStride, _, x0 int) {
	p := &w.packed
	resizeGray(&dst[0], &src[0], dstStride, srcStride, &p.grayAt[0], &p.gray[0], len(w.start), w.chunks(), x0)
}

// rows4 resizes four rows; with strides of 0 the four rows are the same row. The kernel
// makes all pixels but those at the end of the rows, where it would read too far or write a
// byte too many.
func (w *Weights) rows4(dst []byte, dstStride int, src []byte, srcStride, step, x0 int) {
	p := &w.packed
	n := w.rowsReach(cap(src)-3*srcStride, step, x0)
	if n > 0 {
		src := src[:cap(src)]
		resizeRows(&dst[0], &src[0], dstStride, srcStride, &p.start[0], &p.rows[0], n, w.pairs(), step, resizeMasks[step], x0)
	}
	for r := range 4 {
		w.row(dst[r*dstStride:], src[r*srcStride:], n, step, 3, x0)
		if srcStride == 0 {
			return
		}
	}
}

// rowsReach returns how many outputs of a row the kernel can compute if it may read the given
// number of its bytes; at most all but one.
func (w *Weights) rowsReach(bytes, step, x0 int) int {
	reach := (w.pairs()-2)*2*step + 16 // bytes from the window's start that are read
	if w.pairs()%2 == 1 {
		reach = (w.pairs()-1)*2*step + 8
	}
	n := len(w.start) - 1
	for n > 0 && (int(w.packed.start[n-1])-x0)*step+reach > bytes {
		n--
	}
	return n
}

// columnFast makes the first bytes of an output row and returns how many.
func (w *Weights) columnFast(dst, src []byte, stride, i int) int {
	if !useKernels || len(dst) < 32 {
		return 0
	}
	w.packColumns()
	resizeColumn(&dst[0], &src[0], stride, &w.packed.columns[i*2*w.pairs()], int(w.count[i]), len(dst))
	return len(dst)
}
