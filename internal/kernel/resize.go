package kernel

// clip8 rounds a fixed-point sum to a byte. The sum carries roundHalf already.
func clip8(sum int32) byte {
	return byte(min(max(sum>>weightBits, 0), 255))
}

// Rows resizes rows of pixels horizontally: row r of src begins at src[r*srcStride] with the
// input column x0, has step bytes per pixel, the first c (1 or 3) of them used, and holds at
// least the columns that w.Inputs names. Row r of dst begins at dst[r*dstStride] and becomes
// the w.To-w.From output pixels, c bytes each, without gaps.
//
//	dst[r][i][ch] = clip8(1<<21 + sum over j of src[r][start(i)-x0+j][ch] * k(i, j))
func (w *Weights) Rows(dst []byte, dstStride int, src []byte, srcStride, rows, step, c, x0 int) {
	lo, hi := w.Inputs()
	n := w.To - w.From
	if lo < x0 || rows < 0 || c > step || (c != 1 && c != 3) {
		panic("kernel: Rows of an impossible image")
	}
	if rows > 0 && (len(src) < (rows-1)*srcStride+(hi-x0-1)*step+c || len(dst) < (rows-1)*dstStride+n*c) {
		panic("kernel: Rows of too few bytes")
	}
	for r := 0; r < rows; {
		did := w.rowsFast(dst[r*dstStride:], dstStride, src[r*srcStride:], srcStride, rows-r, step, c, x0)
		if did == 0 {
			w.row(dst[r*dstStride:], src[r*srcStride:], 0, step, c, x0)
			did = 1
		}
		r += did
	}
}

// row computes one row from output from on.
func (w *Weights) row(dst, src []byte, from, step, c, x0 int) {
	for i := from; i < w.To-w.From; i++ {
		k := w.k[i*w.taps:][:w.count[i]]
		s := src[(int(w.start[i])-x0)*step:]
		if c == 1 {
			dst[i] = sum1(s, k, step)
		} else {
			r, g, b := sum3(s, k, step)
			d := dst[3*i:][:3]
			d[0], d[1], d[2] = r, g, b
		}
	}
}

func sum1(s []byte, k []int32, step int) byte {
	sum := int32(roundHalf)
	for j, v := range k {
		sum += int32(s[j*step]) * v
	}
	return clip8(sum)
}

func sum3(s []byte, k []int32, step int) (byte, byte, byte) {
	r, g, b := int32(roundHalf), int32(roundHalf), int32(roundHalf)
	for j, v := range k {
		p := s[j*step:][:3]
		r += int32(p[0]) * v
		g += int32(p[1]) * v
		b += int32(p[2]) * v
	}
	return clip8(r), clip8(g), clip8(b)
}

// Column computes output row i (From <= i < To) of a vertical resize. Input row y is the
// len(dst) bytes at src[(y-y0)*stride], and src has the rows of w.Span(i).
//
//	dst[x] = clip8(1<<21 + sum over j of src[start(i)-y0+j][x] * k(i, j))
func (w *Weights) Column(dst, src []byte, stride, i, y0 int) {
	lo, hi := w.Span(i)
	if lo < y0 || len(src) < (hi-1-y0)*stride+len(dst) {
		panic("kernel: Column of too few rows")
	}
	src = src[(lo-y0)*stride:]
	k := w.k[(i-w.From)*w.taps:][:hi-lo]
	x := w.columnFast(dst, src, stride, i-w.From)
	for ; x < len(dst); x++ {
		sum := int32(roundHalf)
		for j, v := range k {
			sum += int32(src[j*stride+x]) * v
		}
		dst[x] = clip8(sum)
	}
}
