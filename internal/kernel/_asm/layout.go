package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// planes gathers 4 pixels at a time as 4 reds, 4 greens and 4 blues, then transposes.
func planes() {
	function("planes8", "func(red, green, blue, src *byte, n, step int, mask *[2][32]byte)",
		"planes8 takes n >= 32 pixels apart. mask[1] is for 16 bytes that end with the fourth pixel.")
	dst := [3]GPVirtual{param("red"), param("green"), param("blue")}
	src, n, step, mask := param("src"), param("n"), param("step"), param("mask")
	begin, end := YMM(), YMM()
	VMOVDQU(at(mask, 0), begin)
	VMOVDQU(at(mask, 32), end)
	s := GP64()
	blocks(n, 32, func(i GPVirtual) {
		MOVQ(i, s)
		IMULQ(step, s)
		ADDQ(src, s)
		off := GP64() // of the pixels 16 further
		MOVQ(step, off)
		SHLQ(Imm(4), off)
		four := GP64()
		MOVQ(step, four)
		SHLQ(Imm(2), four)
		var y [4]VecVirtual
		for j := range y {
			y[j] = YMM()
			m, disp := begin, 0
			if j > 0 {
				ADDQ(four, s)
			}
			if j == 3 { // end where the pixels end
				ADDQ(four, s)
				m, disp = end, -16
			}
			VMOVDQU(at(s, disp), y[j].AsX())
			VINSERTI128(Imm(1), index(s, off, 1, disp), y[j], y[j])
			VPSHUFB(m, y[j], y[j])
		}
		a, b := YMM(), YMM()
		VPUNPCKLDQ(y[1], y[0], a)
		VPUNPCKLDQ(y[3], y[2], b)
		r, g := YMM(), YMM()
		VPUNPCKLQDQ(b, a, r)
		VPUNPCKHQDQ(b, a, g)
		VMOVDQU(r, index(dst[0], i, 1, 0))
		VMOVDQU(g, index(dst[1], i, 1, 0))
		VPUNPCKHDQ(y[1], y[0], a)
		VPUNPCKHDQ(y[3], y[2], b)
		VPUNPCKLQDQ(b, a, r)
		VMOVDQU(r, index(dst[2], i, 1, 0))
	})
	finish()
}

// bytes16 returns a constant of 16 bytes.
func bytes16(name string, v [16]byte) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, b := range v {
		DATA(i, U8(b))
	}
	return m
}

// bytes32 returns a constant of twice 16 bytes.
func bytes32(name string, v [16]byte) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 32 {
		DATA(i, U8(v[i%16]))
	}
	return m
}

const z = 0x80 // makes VPSHUFB write a zero

// interleave makes red, green, blue, zero of each pixel and drops the zeros.
func interleave() {
	function("interleave3", "func(dst, red, green, blue *byte, n int)",
		"interleave3 takes n pixels, a multiple of 16, and writes 4 bytes beyond them.")
	dst := param("dst")
	src := [3]GPVirtual{param("red"), param("green"), param("blue")}
	n := param("n")
	mask, zero := XMM(), XMM()
	VMOVDQU(bytes16("dropFourth", [16]byte{0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, z, z, z, z}), mask)
	VPXOR(zero, zero, zero)
	i := GP64()
	XORQ(i, i)
	Label("loop")
	r, g, b := XMM(), XMM(), XMM()
	VMOVDQU(index(src[0], i, 1, 0), r)
	VMOVDQU(index(src[1], i, 1, 0), g)
	VMOVDQU(index(src[2], i, 1, 0), b)
	rg, bz, x := XMM(), XMM(), XMM()
	for j := range 4 {
		if j < 2 {
			VPUNPCKLBW(g, r, rg)
			VPUNPCKLBW(zero, b, bz)
		} else {
			VPUNPCKHBW(g, r, rg)
			VPUNPCKHBW(zero, b, bz)
		}
		if j%2 == 0 {
			VPUNPCKLWD(bz, rg, x)
		} else {
			VPUNPCKHWD(bz, rg, x)
		}
		VPSHUFB(mask, x, x)
		VMOVDQU(x, at(dst, 12*j))
	}
	ADDQ(Imm(48), dst)
	ADDQ(Imm(16), i)
	CMPQ(i, n)
	JLT(LabelRef("loop"))
	finish()
}

// pack drops each fourth byte.
func pack() {
	function("pack4", "func(dst, src *byte, n int)", "pack4 takes n >= 8 pixels of 4 bytes.")
	dst, src, n := param("dst"), param("src"), param("n")
	mask, order := YMM(), YMM()
	VMOVDQU(bytes32("dropFourthTwice", [16]byte{0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, z, z, z, z}), mask)
	perm := GLOBL("joinTwelve", RODATA|NOPTR)
	for i, v := range []uint32{0, 1, 2, 4, 5, 6, 3, 7} {
		DATA(i*4, U32(v))
	}
	VMOVDQU(perm, order)
	x, hi, d := YMM(), XMM(), GP64()
	blocks(n, 8, func(i GPVirtual) {
		VMOVDQU(index(src, i, 4, 0), x)
		VPSHUFB(mask, x, x)
		VPERMD(x, order, x)
		LEAQ(index(i, i, 2, 0), d)
		VMOVDQU(x.AsX(), index(dst, d, 1, 0))
		VEXTRACTI128(Imm(1), x, hi)
		VMOVQ(hi, index(dst, d, 1, 16))
	})
	finish()
}

// gray splits the weight of green, which does not fit 16 bits, into two halves.
func gray() {
	function("gray8", "func(dst, src *byte, n, step int, mask *[2][32]byte)",
		"gray8 takes n >= 8 pixels. mask gathers red and green, green and blue as 16-bit pairs.")
	dst, src, n, step, mask := param("dst"), param("src"), param("n"), param("step"), param("mask")
	kRG, kGB, half := YMM(), YMM(), YMM()
	VMOVDQU(broadcast("lumaRG", 19235<<16|19595), kRG)
	VMOVDQU(broadcast("lumaGB", 7471<<16|19235), kGB)
	VMOVDQU(broadcast("lumaHalf", 1<<15), half)
	second, s := GP64(), GP64()
	MOVQ(step, second)
	SHLQ(Imm(3), second)
	SUBQ(Imm(16), second)
	blocks(n, 8, func(i GPVirtual) {
		px, a, b, x := YMM(), YMM(), YMM(), XMM()
		MOVQ(i, s)
		IMULQ(step, s)
		ADDQ(src, s)
		VMOVDQU(at(s, 0), px.AsX())
		VINSERTI128(Imm(1), index(s, second, 1, 0), px, px)
		VPSHUFB(at(mask, 0), px, a)
		VPSHUFB(at(mask, 32), px, b)
		VPMADDWD(kRG, a, a)
		VPMADDWD(kGB, b, b)
		VPADDD(a, b, a)
		VPADDD(half, a, a)
		VPSRLD(Imm(16), a, a)
		VEXTRACTI128(Imm(1), a, x)
		VPACKUSDW(x, a.AsX(), x)
		VPACKUSWB(x, x, x)
		VMOVQ(x, index(dst, i, 1, 0))
	})
	finish()
}

// reverse1 reverses bytes.
func reverse1() {
	function("reverse1", "func(dst, src *byte, n int)", "reverse1 reverses n >= 32 bytes.")
	dst, src, n := param("dst"), param("src"), param("n")
	mask, x, d := YMM(), YMM(), GP64()
	VMOVDQU(bytes32("reverse16", [16]byte{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}), mask)
	blocks(n, 32, func(i GPVirtual) {
		VMOVDQU(index(src, i, 1, 0), x)
		VPSHUFB(mask, x, x)
		VPERMQ(Imm(0x4e), x, x)
		MOVQ(n, d)
		SUBQ(i, d)
		VMOVDQU(x, index(dst, d, 1, -32))
	})
	finish()
}

// reverseRows reverses rows of bytes, block by block in each.
func reverseRows(name string, block int) {
	function(name, "func(dst, src *byte, width, stride, rows int)",
		fmt.Sprintf("%s reverses rows of width >= %d bytes. Those of src begin stride bytes apart.", name, block))
	dst, src, width, stride, rows := param("dst"), param("src"), param("width"), param("stride"), param("rows")
	mask, x, y, d := YMM(), YMM(), XMM(), GP64()
	VMOVDQU(bytes32(name+"Mask", [16]byte{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}), mask)
	Label("row")
	blocks(width, block, func(i GPVirtual) {
		MOVQ(width, d)
		SUBQ(i, d)
		if block == 16 {
			VMOVDQU(index(src, i, 1, 0), y)
			VPSHUFB(mask.AsX(), y, y)
			VMOVDQU(y, index(dst, d, 1, -16))
			return
		}
		VMOVDQU(index(src, i, 1, 0), x)
		VPSHUFB(mask, x, x)
		VPERMQ(Imm(0x4e), x, x)
		VMOVDQU(x, index(dst, d, 1, -32))
	})
	ADDQ(stride, src)
	ADDQ(width, dst)
	DECQ(rows)
	JG(LabelRef("row"))
	finish()
}

// reverse3 reverses pixels five at a time; the sixteenth byte written is one of the pixels
// that come next.
func reverse3() {
	function("reverse3", "func(end, src *byte, n int)",
		"reverse3 takes n pixels, a multiple of 5, and writes them from the last byte at end down. It reads a\n"+
			"byte beyond them and writes one before them.")
	end, src, n := param("end"), param("src"), param("n")
	mask, x := XMM(), XMM()
	VMOVDQU(bytes16("reverseFive", [16]byte{z, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2}), mask)
	Label("loop")
	VMOVDQU(at(src, 0), x)
	VPSHUFB(mask, x, x)
	VMOVDQU(x, at(end, -15))
	ADDQ(Imm(15), src)
	SUBQ(Imm(15), end)
	SUBQ(Imm(5), n)
	JG(LabelRef("loop"))
	finish()
}

// moments keeps sums in 64 bits and squares in 32, which the length limit keeps from
// overflowing.
func moments() {
	function("moments32", "func(out *[4][32]byte, src *byte, n int)",
		"moments32 takes n bytes, a positive multiple of 32, at most 2^18.")
	out, src, n := param("out"), param("src"), param("n")
	sum, sq, least, most, zero := YMM(), YMM(), YMM(), YMM(), YMM()
	for _, v := range []VecVirtual{sum, sq, most, zero} {
		VPXOR(v, v, v)
	}
	VPCMPEQB(least, least, least)
	x, t := YMM(), YMM()
	Label("loop")
	VMOVDQU(at(src, 0), x)
	VPMINUB(x, least, least)
	VPMAXUB(x, most, most)
	VPSADBW(zero, x, t)
	VPADDQ(t, sum, sum)
	VPUNPCKLBW(zero, x, t)
	VPMADDWD(t, t, t)
	VPADDD(t, sq, sq)
	VPUNPCKHBW(zero, x, t)
	VPMADDWD(t, t, t)
	VPADDD(t, sq, sq)
	ADDQ(Imm(32), src)
	SUBQ(Imm(32), n)
	JG(LabelRef("loop"))
	VPUNPCKLDQ(zero, sq, t)
	VPUNPCKHDQ(zero, sq, x)
	VPADDQ(t, x, t)
	VMOVDQU(sum, at(out, 0))
	VMOVDQU(t, at(out, 32))
	VMOVDQU(least, at(out, 64))
	VMOVDQU(most, at(out, 96))
	finish()
}
