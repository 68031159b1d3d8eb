package jpeg

// keptUnits is how many rows of units a plane holds. A strip of eight rows of pixels and the rows
// that the filter looks at above and below lie in at most three rows of units.
const keptUnits = 4

// plane holds the samples of one JPEG component that were decoded last, a ring of rows.
type plane struct {
	pix    []byte
	stride int  // bytes from one row of pix to the next: whole blocks
	held   int  // rows in pix; row y lies where row y+held will
	w, h   int  // samples of the image, without the padding to whole blocks
	fx, fy int  // output columns and rows that a sample stands for
	fancy  bool // the triangle filter applies (triangle)
}

// upsample returns samples [x, x+n) of output row y, with libjpeg-turbo's choice of filter
// (jdsample.c, jinit_upsampler): the triangle filter for factors 2x1, 1x2 and 2x2, else repetition.
// up and sums are scratch; the result lies in up and holds until up is used again.
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

// triangle reports whether libjpeg uses the triangle filter: for factors up to 2, but for rows of
// one or two samples only if columns are not doubled.
func (c *plane) triangle() bool {
	return c.fx <= 2 && c.fy <= 2 && (c.fx == 1 || c.w > 2)
}

// row returns sample row y, which must be among those held.
func (c *plane) row(y int) []byte { return c.pix[y%c.held*c.stride:][:c.w] }

// rows returns the sample row that covers output row y of a component of half the height, and the
// next sample row above or below, whichever is nearer. At the border of the image, where there is
// no such row, both are the same.
func (c *plane) rows(y int) (near, far []byte) {
	k := y / 2
	other := k + 1
	if y&1 == 0 {
		other = k - 1
	}
	return c.row(k), c.row(max(0, min(other, c.h-1)))
}

// double is libjpeg's h2v2_fancy_upsample for even = 8, odd = 7, and its h2v1_fancy_upsample for
// near = far, even = 4, odd = 8 (jdsample.c). A sample counts three quarters, and a quarter comes
// from the next row and then from the next column, with a rounding that differs from column to
// column. x and n count output columns.
//
// libjpeg has formulas of their own for the samples at the border. They come out of the same
// formula if the row is continued by its last sample.
func (c *plane) double(up []byte, sums []uint16, near, far []byte, x, n int, even, odd uint16) []byte {
	first, last := x/2, (x+n-1)/2             // samples that cover the columns
	a, b := max(first-1, 0), min(last+2, c.w) // samples that are needed and exist
	s := sums[:last-first+3]                  // s[i] belongs to sample first-1+i
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

// sumRows sets dst[i] = 3*near[i] + far[i], which is at most 1020.
func sumRows(dst []uint16, near, far []byte) {
	near, far = near[:len(dst)], far[:len(dst)]
	for i := sumRowsFast(dst, near, far); i < len(dst); i++ {
		dst[i] = 3*uint16(near[i]) + uint16(far[i])
	}
}

// doubleColumns makes two samples of each of s but the first and the last, which only contribute:
// dst[2i] = (3 s[i+1] + s[i] + even) >> 4 and dst[2i+1] = (3 s[i+1] + s[i+2] + odd) >> 4. The sums
// of up to 16 * 255 fit into uint16.
func doubleColumns(dst []byte, s []uint16, even, odd uint16) {
	s = s[:len(dst)/2+2]
	for i := doubleColumnsFast(dst, s, even, odd); i < len(dst)/2; i++ {
		m := 3 * s[i+1]
		dst[2*i] = byte((m + s[i] + even) >> 4)
		dst[2*i+1] = byte((m + s[i+2] + odd) >> 4)
	}
}

// blendRows sets dst[i] = (3*near[i] + far[i] + bias) >> 2.
func blendRows(dst, near, far []byte, bias uint16) {
	near, far = near[:len(dst)], far[:len(dst)]
	for i := range dst {
		dst[i] = byte((3*uint16(near[i]) + uint16(far[i]) + bias) >> 2)
	}
}

// yccToRGBX is libjpeg's ycc_rgb_convert (jdcolor.c): 16-bit fixed point, the products for
// red and blue are rounded one by one, the two products for green are summed first. dst has
// 4 bytes a pixel.
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

// clamp limits v to a byte.
func clamp(v int32) byte { return byte(max(0, min(v, 255))) }
