package jpeg

// keptUnits is how many rows of units a plane holds: a strip needs three of them at most.
const keptUnits = 4

// plane holds the samples of one JPEG component that were decoded last.
type plane struct {
	pix    []byte
	stride int
	held   int // rows in pix: row y is where row y+held will be
	w, h   int // true samples, without the padding to whole blocks
	fx, fy int // output columns and rows that a sample stands for
	fancy  bool
}

// upsample returns samples [x, x+n) of output row y, with libjpeg-turbo's choice of
// filter (jdsample.c, jinit_upsampler): the triangle filter for factors 2x1, 1x2 and 2x2,
// else repetition. up and sums are scratch; the result lies in up.
func (c *plane) upsample(up []byte, sums []uint16, y, x, n int) []byte {
	switch {
	case c.fancy && c.fx == 2 && c.fy == 2:
		near, far := c.rows(y)
		return c.double(up, sums, near, far, x, n, 8, 7)
	case c.fancy && c.fx == 2 && c.fy == 1:
		row := c.row(y)
		return c.double(up, sums, row, row, x, n, 4, 8)
	case c.fancy && c.fx == 1 && c.fy == 2:
		near, far := c.rows(y)
		blendRows(up[:n], near[x:], far[x:], 1+uint16(y&1))
		return up[:n]
	}
	row := c.row(y / c.fy)
	for i := range n {
		up[i] = row[(x+i)/c.fx]
	}
	return up[:n]
}

// triangle reports whether libjpeg uses the triangle filter: not for rows of one or two
// samples, where columns are doubled.
func (c *plane) triangle() bool {
	return c.fx <= 2 && c.fy <= 2 && (c.fx == 1 || c.w > 2)
}

func (c *plane) row(y int) []byte { return c.pix[y%c.held*c.stride:][:c.w] }

// rows returns the sample row that covers output row y of a component of half the height,
// and the next one above or below, whichever is nearer; at the border, itself.
func (c *plane) rows(y int) (near, far []byte) {
	k := y / 2
	other := k + 1
	if y&1 == 0 {
		other = k - 1
	}
	return c.row(k), c.row(max(0, min(other, c.h-1)))
}

// double is libjpeg's h2v2_fancy_upsample for even = 8, odd = 7, and its
// h2v1_fancy_upsample for near = far, even = 4, odd = 8: a quarter of the next row, then a
// quarter of the next column, with a rounding that differs from column to column.
//
// The border samples, for which libjpeg has formulas of their own, come out of the same
// one if the row is continued by its last sample.
func (c *plane) double(up []byte, sums []uint16, near, far []byte, x, n int, even, odd uint16) []byte {
	first, last := x/2, (x+n-1)/2 // samples that cover the columns
	a, b := max(first-1, 0), min(last+2, c.w)
	s := sums[:last-first+3] // s[i] belongs to sample first-1+i
	sumRows(s[a-first+1:][:b-a], near[a:], far[a:])
	if a == first {
		s[0] = s[1]
	}
	if b == last+1 {
		s[len(s)-1] = s[len(s)-2]
	}
	doubleColumns(up[:2*(last-first+1)], s, even, odd)
	return up[x&1:][:n]
}

// sumRows is dst[i] = 3*near[i] + far[i].
func sumRows(dst []uint16, near, far []byte) {
	near, far = near[:len(dst)], far[:len(dst)]
	for i := sumRowsFast(dst, near, far); i < len(dst); i++ {
		dst[i] = 3*uint16(near[i]) + uint16(far[i])
	}
}

// doubleColumns makes two samples of each of s but the first and the last:
// dst[2i] = (3 s[i+1] + s[i] + even) >> 4 and dst[2i+1] = (3 s[i+1] + s[i+2] + odd) >> 4.
func doubleColumns(dst []byte, s []uint16, even, odd uint16) {
	s = s[:len(dst)/2+2]
	for i := doubleColumnsFast(dst, s, even, odd); i < len(dst)/2; i++ {
		m := 3 * s[i+1]
		dst[2*i] = byte((m + s[i] + even) >> 4)
		dst[2*i+1] = byte((m + s[i+2] + odd) >> 4)
	}
}

// blendRows is dst[i] = (3*near[i] + far[i] + bias) >> 2.
func blendRows(dst, near, far []byte, bias uint16) {
	near, far = near[:len(dst)], far[:len(dst)]
	for i := range dst {
		dst[i] = byte((3*uint16(near[i]) + uint16(far[i]) + bias) >> 2)
	}
}

// yccToRGBX is libjpeg's ycc_rgb_convert (jdcolor.c): 16-bit fixed point, each of the two
// products for red and blue rounded, those for green summed first. dst has 4 bytes a pixel.
func yccToRGBX(dst, y, cb, cr []byte) {
	dst, cb, cr = dst[:4*len(y)], cb[:len(y)], cr[:len(y)]
	for i := yccToRGBXFast(dst, y, cb, cr); i < len(y); i++ {
		p := dst[4*i : 4*i+4 : 4*i+4]
		lum, b, r := int32(y[i]), int32(cb[i])-128, int32(cr[i])-128
		p[0] = clamp(lum + (91881*r+1<<15)>>16)
		p[1] = clamp(lum + (-22554*b-46802*r+1<<15)>>16)
		p[2] = clamp(lum + (116130*b+1<<15)>>16)
		p[3] = 255
	}
}

func clamp(v int32) byte { return byte(max(0, min(v, 255))) }
