package cnn

// addProduct adds to c the product of a and b, for c of m x n and b of k x n, dense and row
// by row. Element (i, p) of a, which is m x k, is a[i*row+p*col]: (k, 1) reads a as it is,
// (1, m) reads it transposed.
//
// Two rows of c and four of b are worked on together, so that a loaded value is used several times,
// which keeps a CPU without vector code busy.
func addProduct(c, a, b []float32, m, n, k, row, col int) {
	i := 0
	for ; i+2 <= m; i += 2 {
		c0, c1 := c[i*n:][:n], c[(i+1)*n:][:n]
		p := 0
		for ; p+4 <= k; p += 4 {
			at := i*row + p*col
			x := [4]float32{a[at], a[at+col], a[at+2*col], a[at+3*col]}
			at += row
			y := [4]float32{a[at], a[at+col], a[at+2*col], a[at+3*col]}
			addRows(c0, c1, b[p*n:], x, y)
		}
		for ; p < k; p++ {
			addRow(c0, a[i*row+p*col], b[p*n:])
			addRow(c1, a[(i+1)*row+p*col], b[p*n:])
		}
	}
	for ; i < m; i++ {
		for p := range k {
			addRow(c[i*n:][:n], a[i*row+p*col], b[p*n:])
		}
	}
}

// addRows adds rows 0 to 3 of b, each as long as c0, to c0 weighted by x and to c1 weighted
// by y.
func addRows(c0, c1, b []float32, x, y [4]float32) {
	n := len(c0)
	c1 = c1[:n]
	b0, b1, b2, b3 := b[:n], b[n:][:n], b[2*n:][:n], b[3*n:][:n]
	x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
	y0, y1, y2, y3 := y[0], y[1], y[2], y[3]
	for j := range c0 {
		u, v, w, z := b0[j], b1[j], b2[j], b3[j]
		c0[j] += x0*u + x1*v + x2*w + x3*z
		c1[j] += y0*u + y1*v + y2*w + y3*z
	}
}

// addRow adds the first row of b, as long as c, weighted by x, to c.
func addRow(c []float32, x float32, b []float32) {
	b = b[:len(c)]
	for j := range c {
		c[j] += x * b[j]
	}
}

// transpose sets dst, of n x m, to src, of m x n, the other way round.
func transpose(dst, src []float32, m, n int) {
	for i := range m {
		for j := range n {
			dst[j*m+i] = src[i*n+j]
		}
	}
}
