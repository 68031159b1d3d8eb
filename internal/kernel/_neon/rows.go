package main

// sumRows multiplies the near row by 3.
func sumRows() *kernel {
	k := begin("sumRowsKernel", "dst *uint16, near, far *byte, n int", "makes n >= 16 sums.")
	dst, near, far, n := k.param("dst"), k.param("near"), k.param("far"), k.param("n")
	three := k.constant(0x03030303_03030303, 0x03030303_03030303)
	i, at := k.gp(), k.gp()
	a, b, sums := k.vec(), k.vec(), k.several(2)
	k.blocks(n, i, 16, func() {
		k.at(near, i, 1, at)
		k.load(at, 0, a)
		k.at(far, i, 1, at)
		k.load(at, 0, b)
		k.op("VUXTL %v.B8, %v.H8", b, sums[0])
		k.op("VUXTL2 %v.B16, %v.H8", b, sums[1])
		k.umlalBytes(sums[0], a, three)
		k.umlalBytes2(sums[1], a, three)
		k.at(dst, i, 2, at)
		k.op("VST1 %s, (%v)", list(sums, "H8"), at)
	})
	return k.finish()
}

// doubleColumns makes 8 pairs at a time, twice, and writes them interleaved.
func doubleColumns() *kernel {
	k := begin("doubleColumnsKernel", "dst *byte, s *uint16, n int, even, odd uint16", "makes n >= 16 pairs of samples.")
	dst, s, n := k.param("dst"), k.param("s"), k.param("n")
	round, out := k.several(2), k.several(2)
	for i, name := range []string{"even", "odd"} {
		k.op("VDUP %v, %v.H8", k.param(name), round[i])
	}
	i, at := k.gp(), k.gp()
	middle, t := k.vec(), k.vec()
	narrow := []func(d, n vec){k.shrn4, k.shrn4by2}
	k.blocks(n, i, 16, func() {
		k.at(s, i, 2, at)
		for half := range 2 {
			k.load(at, 16*half+2, middle)
			k.op("VADD %v.H8, %v.H8, %v.H8", middle, middle, t)
			k.op("VADD %v.H8, %v.H8, %v.H8", t, middle, middle)
			for side := range 2 {
				k.load(at, 16*half+4*side, t)
				k.op("VADD %v.H8, %v.H8, %v.H8", middle, t, t)
				k.op("VADD %v.H8, %v.H8, %v.H8", round[side], t, t)
				narrow[half](out[side], t)
			}
		}
		k.at(dst, i, 2, at)
		k.op("VST2 %s, (%v)", list(out, "B16"), at)
	})
	return k.finish()
}

// yccToRGBX keeps to 16-bit factors: 1.402 is 1 + 26345/65536, 1.772 is 2 - 14942/65536, and
// green's 0.71414 is 1 - 18734/65536.
func yccToRGBX() *kernel {
	k := begin("yccToRGBXKernel", "dst, y, cb, cr *byte, n int", "converts n >= 16 pixels.")
	dst, py, pb, pr, n := k.param("dst"), k.param("y"), k.param("cb"), k.param("cr"), k.param("n")
	const red, blue, greenB, greenR = 0, 1, 2, 3
	factors := k.constant(words(91881-1<<16, 116130-1<<17, -22554, 1<<16-46802), 0)
	center := k.constant(0x80808080_80808080, 0x80808080_80808080)
	lum, b, r := k.vec(), k.vec(), k.vec()
	wb, wr, lower, upper := k.vec(), k.vec(), k.vec(), k.vec()
	out := k.several(4)
	i, at := k.gp(), k.gp()
	k.op("VCMEQ %v.B16, %v.B16, %v.B16", out[3], out[3], out[3])

	// product makes the rounded products of chroma and a factor, and perhaps of another.
	product := func(c vec, factor int, more func()) {
		k.smull(lower, c, factors, factor)
		k.smull2(upper, c, factors, factor)
		more()
		k.rshrn(lower, lower)
		k.rshrn2(lower, upper)
	}
	none := func() {}
	widen := []func(d, n, m vec){k.usubl, k.usubl2}
	light := []func(d, n, m vec){k.uaddw, k.uaddw2}
	narrow := []func(d, n vec){k.sqxtun, k.sqxtun2}
	k.blocks(n, i, 16, func() {
		for _, from := range []struct {
			base gp
			to   vec
		}{{py, lum}, {pb, b}, {pr, r}} {
			k.at(from.base, i, 1, at)
			k.load(at, 0, from.to)
		}
		for half := range 2 {
			put := func(channel int) {
				light[half](lower, lower, lum)
				narrow[half](out[channel], lower)
			}
			widen[half](wb, b, center)
			widen[half](wr, r, center)
			product(wr, red, none)
			k.op("VADD %v.H8, %v.H8, %v.H8", wr, lower, lower)
			put(0)
			product(wb, greenB, func() {
				k.smlal(lower, wr, factors, greenR)
				k.smlal2(upper, wr, factors, greenR)
			})
			k.op("VSUB %v.H8, %v.H8, %v.H8", wr, lower, lower)
			put(1)
			product(wb, blue, none)
			k.op("VADD %v.H8, %v.H8, %v.H8", wb, lower, lower)
			k.op("VADD %v.H8, %v.H8, %v.H8", wb, lower, lower)
			put(2)
		}
		k.at(dst, i, 4, at)
		k.op("VST4 %s, (%v)", list(out, "B16"), at)
	})
	return k.finish()
}

// words packs four numbers of 16 bits, the first lowest.
func words(v ...int) (packed uint64) {
	for i, n := range v {
		packed |= uint64(uint16(n)) << (16 * i)
	}
	return packed
}
