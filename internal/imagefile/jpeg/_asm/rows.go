package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// sumRows emits the kernel of the function of that name: 3*near + far in words of 16 bits.
func sumRows() {
	function("sumRowsKernel", "func(dst *uint16, near, far *byte, n int)",
		"sumRowsKernel makes n >= 16 sums.")
	dst, near, far, n := param("dst"), param("near"), param("far"), param("n")
	a, b, t := YMM(), YMM(), YMM()
	blocks(n, 16, func(i GPVirtual) {
		VPMOVZXBW(index(near, i, 1), a)
		VPMOVZXBW(index(far, i, 1), b)
		VPADDW(a, a, t)
		VPADDW(a, b, b)
		VPADDW(t, b, b)
		VMOVDQU(b, index(dst, i, 2))
	})
	finish()
}

// doubleColumns emits the kernel of the function of that name, for 16 sums at a time. The two new
// samples of each sum are the low and the high byte of a word, so that one store writes them in
// order.
func doubleColumns() {
	function("doubleColumnsKernel", "func(dst *byte, s *uint16, n int, even, odd uint16)",
		"doubleColumnsKernel makes n >= 16 pairs of samples.")
	dst, s, n := param("dst"), param("s"), param("n")
	round := [2]VecVirtual{YMM(), YMM()} // the rounding of even and odd samples, in all words
	for i, name := range []string{"even", "odd"} {
		x, g := XMM(), GP32()
		Load(Param(name), g)
		VMOVD(g, x)
		VPBROADCASTW(x, round[i])
	}
	m, e, o := YMM(), YMM(), YMM()
	blocks(n, 16, func(i GPVirtual) {
		middle := index(s, i, 2)
		middle.Disp = 2
		right := middle
		right.Disp = 4
		VMOVDQU(middle, m)
		VPADDW(m, m, e)
		VPADDW(e, m, m)
		VPADDW(index(s, i, 2), m, e)
		VPADDW(right, m, o)
		VPADDW(round[0], e, e)
		VPADDW(round[1], o, o)
		VPSRLW(Imm(4), e, e)
		VPSRLW(Imm(4), o, o)
		VPSLLW(Imm(8), o, o)
		VPOR(o, e, e)
		VMOVDQU(e, index(dst, i, 2))
	})
	finish()
}

// yccToRGBX emits the kernel of the function of that name, which keeps to 16 bits for red and blue:
// 1.402 is 1 + 26345/65536, 1.772 is 2 - 14942/65536, and (c*k + 2^15) >> 16 is ((2*c*k >> 16) + 1)
// >> 1, whose inner part VPMULHW gives. Green needs the sum of two products before it is rounded,
// which VPMADDWD makes in 32 bits. Its factor -46802 is too small for a signed word, so it is taken
// with 65536 added, and the red difference is subtracted afterwards.
func yccToRGBX() {
	const kr, kb = 91881 - 1<<16, 116130 - 1<<17
	cr, cb := words("kr", kr), words("kb", kb)
	green, half := words("green", -22554, 1<<16-46802), longs("half16", 1<<15)
	center, one := words("center", 128), words("one", 1)
	white, opaque := words("white", 255), words("opaque", 0xFF00)
	function("yccToRGBXKernel", "func(dst, y, cb, cr *byte, n int)",
		"yccToRGBXKernel converts n >= 16 pixels.")
	dst, py, pb, pr, n := param("dst"), param("y"), param("cb"), param("cr"), param("n")
	lum, b, r := YMM(), YMM(), YMM()
	red, blue, grn, t := YMM(), YMM(), YMM(), YMM()
	zero := YMM()
	VPXOR(zero, zero, zero)
	blocks(n, 16, func(i GPVirtual) {
		VPMOVZXBW(index(py, i, 1), lum)
		VPMOVZXBW(index(pb, i, 1), b)
		VPMOVZXBW(index(pr, i, 1), r)
		VPSUBW(center, b, b)
		VPSUBW(center, r, r)

		VPADDW(r, r, red)
		VPMULHW(cr, red, red)
		VPADDW(one, red, red)
		VPSRAW(Imm(1), red, red)
		VPADDW(r, red, red)
		VPADDW(lum, red, red)

		VPADDW(b, b, t)
		VPMULHW(cb, t, blue)
		VPADDW(one, blue, blue)
		VPSRAW(Imm(1), blue, blue)
		VPADDW(t, blue, blue)
		VPADDW(lum, blue, blue)

		VPUNPCKLWD(r, b, grn)
		VPUNPCKHWD(r, b, t)
		VPMADDWD(green, grn, grn)
		VPMADDWD(green, t, t)
		VPADDD(half, grn, grn)
		VPADDD(half, t, t)
		VPSRAD(Imm(16), grn, grn)
		VPSRAD(Imm(16), t, t)
		VPACKSSDW(t, grn, grn)
		VPSUBW(r, grn, grn)
		VPADDW(lum, grn, grn)

		for _, v := range []VecVirtual{red, grn, blue} {
			VPMAXSW(zero, v, v)
			VPMINSW(white, v, v)
		}
		VPSLLW(Imm(8), grn, grn)
		VPOR(grn, red, red)
		VPOR(opaque, blue, blue)
		VPUNPCKLWD(blue, red, grn) // pixels 0-3, 8-11
		VPUNPCKHWD(blue, red, t)   // pixels 4-7, 12-15
		VPERM2I128(Imm(0x20), t, grn, red)
		VPERM2I128(Imm(0x31), t, grn, blue)
		o := GP64()
		MOVQ(i, o)
		SHLQ(Imm(2), o)
		VMOVDQU(red, index(dst, o, 1))
		second := index(dst, o, 1)
		second.Disp = 32
		VMOVDQU(blue, second)
	})
	finish()
}
