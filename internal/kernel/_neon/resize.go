package main

const weightBits = 22

// roundHalf is a half of the fixed point in each 32 bits.
const roundHalf = 1<<(weightBits-1+32) | 1<<(weightBits-1)

// toBytes makes d's first 8 bytes of the sums in a and b: their upper 16 bits without the 6
// lowest, which is all without the 22 lowest, limited to bytes.
func (k *kernel) toBytes(d, a, b vec) {
	k.op("VUZP2 %v.H8, %v.H8, %v.H8", b, a, d)
	k.sqshrun(d, d)
}

// multiply adds to sum the four bytes of x that mask gathers, times numbers of weights.
func (k *kernel) multiply(sum, x, mask, t vec, add func(d, n vec)) {
	k.op("VTBL %v.B16, [%v.B16], %v.B16", mask, x, t)
	add(sum, t)
}

// resizeRows resizes four rows horizontally: a register holds the channels of one pixel as
// 32-bit numbers, the fourth of which is zero.
func resizeRows() *kernel {
	k := begin("resizeRows", "dst, src *byte, dstStride, srcStride int, start, k *int32, n, pairs, step int, mask *[4][16]byte, x0 int",
		"makes n pixels of each of 4 rows, whose first byte belongs to input x0. It writes a byte beyond each row of dst, and\n"+
			"reads 16 bytes for each 2 pairs of inputs, 8 for a last odd one.")
	dst, src := k.param("dst"), k.param("src")
	ds, ss := k.param("dstStride"), k.param("srcStride")
	start, weights, n := k.param("start"), k.param("k"), k.param("n")
	pairs, step, mask, x0 := k.param("pairs"), k.param("step"), k.param("mask"), k.param("x0")
	masks := k.several(4)
	k.op("VLD1 (%v), %s", mask, list(masks, "B16"))
	half := k.constant(roundHalf, roundHalf)
	to := k.rows(dst, ds)
	from := k.pointers()
	sums, x, t, w := k.several(4), k.several(4), k.several(4), k.vec()
	left, four := k.gp(), k.gp()
	k.op("LSL $2, %v, %v", step, four)
	three := mask // which is in registers
	k.op("MOVD $3, %v", three)

	// inputs adds some inputs of each row.
	inputs := func(load func(r gp, v vec), pixels int) {
		for i := range 4 {
			load(from[i], x[i])
		}
		for j := range pixels {
			for i := range 4 {
				k.multiply(sums[i], x[i], masks[j], t[i], func(d, n vec) { k.mlaLane(d, n, w, j) })
			}
		}
	}
	k.label("pixel")
	k.op("MOVW.P 4(%v), %v", start, from[0])
	k.op("SUB %v, %v, %v", x0, from[0], from[0])
	k.op("MUL %v, %v, %v", step, from[0], from[0])
	k.op("ADD %v, %v, %v", src, from[0], from[0])
	k.follow(from, ss)
	for _, sum := range sums {
		k.op("VMOV %v.B16, %v.B16", half, sum)
	}
	k.op("SUBS $2, %v, %v", pairs, left)
	k.op("BLT odd")

	k.label("quad")
	k.op("VLD1.P 16(%v), [%v.S4]", weights, w)
	inputs(func(r gp, v vec) { k.op("VLD1.P (%v)(%v), [%v.B16]", r, four, v) }, 4)
	k.op("SUBS $2, %v, %v", left, left)
	k.op("BGE quad")

	k.label("odd")
	k.op("CMN $1, %v", left)
	k.op("BNE store")
	k.op("VLD1.P 8(%v), [%v.S2]", weights, w)
	inputs(func(r gp, v vec) { k.load8(r, 0, v) }, 2)

	k.label("store")
	for i := 0; i < 4; i += 2 {
		k.toBytes(sums[i], sums[i], sums[i+1])
		for j := range 2 {
			k.op("VST1.P %v.S[%d], (%v)(%v)", sums[i], j, to[i+j], three)
		}
	}
	k.op("SUBS $1, %v, %v", n, n)
	k.op("BGT pixel")
	return k.finish()
}

// pointers returns four registers.
func (k *kernel) pointers() (p [4]gp) {
	for i := range p {
		p[i] = k.gp()
	}
	return p
}

// rows returns where four rows begin, the first at base.
func (k *kernel) rows(base, stride gp) [4]gp {
	p := k.pointers()
	k.op("MOVD %v, %v", base, p[0])
	k.follow(p, stride)
	return p
}

// follow sets all registers of p but the first to the starts of the next rows: each is stride
// after the register before.
func (k *kernel) follow(p [4]gp, stride gp) {
	for i := 1; i < len(p); i++ {
		k.op("ADD %v, %v, %v", stride, p[i-1], p[i])
	}
}

// widenMasks returns the masks of a table look-up that widens four bytes, from byte 4*i on,
// to four 32-bit numbers, for i from 0 to n-1.
func (k *kernel) widenMasks(n int) []vec {
	m := make([]vec, n)
	for i := range m {
		first := 0xffffff01_ffffff00 + uint64(4*i)*0x1_00000001
		m[i] = k.constant(first, first+0x2_00000002)
	}
	return m
}

// resizeGray resizes four rows of single bytes: a register holds four sums for one row, which
// are added up at the end.
func resizeGray() *kernel {
	k := begin("resizeGray", "dst, src *byte, dstStride, srcStride int, start *int32, k *[8]int32, n, chunks, x0 int",
		"makes n bytes of each of 4 rows, whose first byte is input x0, of 8*chunks inputs each.")
	dst, src := k.param("dst"), k.param("src")
	ds, ss := k.param("dstStride"), k.param("srcStride")
	start, weights, n := k.param("start"), k.param("k"), k.param("n")
	chunks, x0 := k.param("chunks"), k.param("x0")
	masks := k.widenMasks(2)
	half := k.constant(roundHalf, roundHalf)
	to, from, left := k.rows(dst, ds), k.pointers(), k.gp()
	sums, x, w, t := k.several(4), k.vec(), k.several(2), k.vec()
	k.op("SUB %v, %v, %v", x0, src, src)

	k.label("pixel")
	k.op("MOVW.P 4(%v), %v", start, from[0])
	k.op("ADD %v, %v, %v", src, from[0], from[0])
	k.follow(from, ss)
	for _, sum := range sums {
		k.op("VEOR %v.B16, %v.B16, %v.B16", sum, sum, sum)
	}
	k.op("MOVD %v, %v", chunks, left)

	k.label("chunk")
	k.op("VLD1.P 32(%v), %s", weights, list(w, "S4"))
	for i, sum := range sums {
		k.op("VLD1.P 8(%v), [%v.B8]", from[i], x)
		for j, mask := range masks {
			k.multiply(sum, x, mask, t, func(d, n vec) { k.mla(d, n, w[j]) })
		}
	}
	k.op("SUBS $1, %v, %v", left, left)
	k.op("BGT chunk")

	for i := 0; i < 4; i += 2 {
		k.op("VADDP %v.S4, %v.S4, %v.S4", sums[i+1], sums[i], sums[i])
	}
	k.op("VADDP %v.S4, %v.S4, %v.S4", sums[2], sums[0], sums[0])
	k.op("VADD %v.S4, %v.S4, %v.S4", half, sums[0], sums[0])
	k.toBytes(sums[0], sums[0], sums[0])
	for i, r := range to {
		k.op("VST1.P %v.B[%d], 1(%v)", sums[0], i, r)
	}
	k.op("SUBS $1, %v, %v", n, n)
	k.op("BGT pixel")
	return k.finish()
}

// resizeColumn adds rows times their weights, 32 bytes at a time.
func resizeColumn() *kernel {
	k := begin("resizeColumn", "dst, src *byte, stride int, k *int32, taps, n int",
		"makes n >= 32 bytes of taps rows.")
	dst, src, stride := k.param("dst"), k.param("src"), k.param("stride")
	weights, taps, n := k.param("k"), k.param("taps"), k.param("n")
	masks := k.widenMasks(4)
	half := k.constant(roundHalf, roundHalf)
	sums, x, t, w := k.several(8), k.several(2), k.several(2), k.vec()
	i, at, next, left, to := k.gp(), k.gp(), k.gp(), k.gp(), k.gp()
	k.blocks(n, i, 32, func() {
		k.at(src, i, 1, at)
		k.at(dst, i, 1, to)
		k.op("MOVD %v, %v", weights, next)
		k.op("MOVD %v, %v", taps, left)
		for _, sum := range sums {
			k.op("VMOV %v.B16, %v.B16", half, sum)
		}
		k.label("tap")
		k.op("VLD1R.P 4(%v), [%v.S4]", next, w)
		k.op("VLD1.P (%v)(%v), %s", at, stride, list(x, "B16"))
		for j, sum := range sums {
			k.multiply(sum, x[j/4], masks[j%4], t[j%2], func(d, n vec) { k.mla(d, n, w) })
		}
		k.op("SUBS $1, %v, %v", left, left)
		k.op("BGT tap")
		for j := range x {
			s := sums[4*j:]
			k.op("VUZP2 %v.H8, %v.H8, %v.H8", s[1], s[0], s[0])
			k.op("VUZP2 %v.H8, %v.H8, %v.H8", s[3], s[2], s[2])
			k.sqshrun(x[j], s[0])
			k.sqshrun2(x[j], s[2])
		}
		k.op("VST1 %s, (%v)", list(x, "B16"), to)
	})
	return k.finish()
}
