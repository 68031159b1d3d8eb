package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	weightBits = 22
	lowBits    = 11 // a weight is high<<lowBits + low, both 16 bits
)

// resizeRows resizes four rows horizontally: a register holds the same pixels of two rows,
// one in each half, and VPMADDWD adds two neighboring pixels times their weights.
func resizeRows() {
	function("resizeRows", "func(dst, src *byte, dstStride, srcStride int, start, k *int32, n, pairs, step int, mask *[2][32]byte, x0 int)",
		"resizeRows makes n pixels of each of 4 rows, whose first byte belongs to input x0. It writes a byte beyond each row of dst,\n"+
			"reads 16 bytes for each 2 pairs of inputs, 8 for a last odd one, and prefetches the 4 rows that\n"+
			"follow.")
	dst, src := param("dst"), param("src")
	ds, ss := param("dstStride"), param("srcStride")
	start, k, n := param("start"), param("k"), param("n")
	pairs, step, mask := param("pairs"), param("step"), param("mask")
	ds3, ss3 := GP64(), GP64()
	LEAQ(index(ds, ds, 2, 0), ds3)
	LEAQ(index(ss, ss, 2, 0), ss3)
	m01, m23, half := YMM(), YMM(), YMM()
	VMOVDQU(at(mask, 0), m01)
	VMOVDQU(at(mask, 32), m23)
	VMOVDQU(broadcastOnce("roundHalf", 1<<(weightBits-1)), half)

	s, left := GP64(), GP64()
	next := GP64() // what follows four rows is prefetched as one, four times as fast: at next + 4*s
	LEAQ(index(src, src, 2, 0), s)
	MOVQ(ss, next)
	SHLQ(Imm(2), next)
	SUBQ(s, next)
	MOVQ(param("x0"), s) // from here on, src is input 0
	IMULQ(step, s)
	SUBQ(s, src)
	hA, lA, hB, lB := YMM(), YMM(), YMM(), YMM()
	a, b, t := YMM(), YMM(), YMM()
	SUBQ(Imm(2), pairs)
	Label("pixel")
	MOVLQSX(at(start, 0), s)
	IMULQ(step, s)
	ADDQ(src, s)
	PREFETCHT0(index(next, s, 4, 0))
	MOVQ(pairs, left)

	rows := func(load func(Op, Op), a, b VecVirtual) {
		x := XMM()
		load(at(s, 0), a.AsX())
		load(index(s, ss, 1, 0), x)
		VINSERTI128(Imm(1), x, a, a)
		load(index(s, ss, 2, 0), b.AsX())
		x = XMM()
		load(index(s, ss3, 1, 0), x)
		VINSERTI128(Imm(1), x, b, b)
	}
	pair := func(mask VecVirtual, disp int, first bool) {
		kh, kl, p := YMM(), YMM(), YMM()
		VPBROADCASTD(at(k, disp), kh)
		VPBROADCASTD(at(k, disp+4), kl)
		for _, r := range []struct{ px, h, l VecVirtual }{{a, hA, lA}, {b, hB, lB}} {
			VPSHUFB(mask, r.px, p)
			if first {
				VPMADDWD(p, kh, r.h)
				VPMADDWD(p, kl, r.l)
				VPADDD(half, r.l, r.l)
				continue
			}
			VPMADDWD(p, kh, t)
			VPADDD(t, r.h, r.h)
			VPMADDWD(p, kl, t)
			VPADDD(t, r.l, r.l)
		}
	}
	quad := func(first bool) {
		rows(func(m, r Op) { VMOVDQU(m, r) }, a, b)
		pair(m01, 0, first)
		pair(m23, 8, false)
		ADDQ(Imm(16), k)
		LEAQ(index(s, step, 4, 0), s)
		SUBQ(Imm(2), left)
	}
	TESTQ(left, left)
	JLT(LabelRef("one"))
	quad(true)
	JLT(LabelRef("odd"))
	Label("quad")
	quad(false)
	JGE(LabelRef("quad"))

	Label("odd")
	CMPQ(left, I32(-1))
	JNE(LabelRef("store"))
	rows(func(m, r Op) { VMOVQ(m, r) }, a, b)
	pair(m01, 0, false)
	ADDQ(Imm(8), k)
	JMP(LabelRef("store"))
	Label("one")
	rows(func(m, r Op) { VMOVQ(m, r) }, a, b)
	pair(m01, 0, true)
	ADDQ(Imm(8), k)

	Label("store")
	combine(hA, lA)
	combine(hB, lB)
	VPACKSSDW(lB, lA, lA) // row 0, row 2 | row 1, row 3
	VPACKUSWB(lA, lA, lA)
	VMOVD(lA.AsX(), at(dst, 0))
	VPEXTRD(Imm(1), lA.AsX(), index(dst, ds, 2, 0))
	VEXTRACTI128(Imm(1), lA, a.AsX())
	VMOVD(a.AsX(), index(dst, ds, 1, 0))
	VPEXTRD(Imm(1), a.AsX(), index(dst, ds3, 1, 0))
	ADDQ(Imm(3), dst)
	ADDQ(Imm(4), start)
	DECQ(n)
	JNZ(LabelRef("pixel"))
	finish()
}

// combine makes l the sum h<<lowBits + l without its fraction.
func combine(h, l VecVirtual) {
	VPSLLD(Imm(lowBits), h, h)
	VPADDD(h, l, l)
	VPSRAD(Imm(weightBits), l, l)
}

// resizeColumn adds rows times their weights, two rows at a time: their bytes are
// interleaved so that VPMADDWD finds both in a pair.
func resizeColumn() {
	function("resizeColumn", "func(dst, src *byte, stride int, k *int32, taps, n int)",
		"resizeColumn makes n >= 32 bytes of taps rows.")
	dst, src, stride := param("dst"), param("src"), param("stride")
	k0, taps, n := param("k"), param("taps"), param("n")
	var h, l [4]VecVirtual
	for i := range h {
		h[i], l[i] = YMM(), YMM()
	}
	zero, a, b, kh, kl, w, t := YMM(), YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
	VPXOR(zero, zero, zero)
	half := broadcastOnce("roundHalf", 1<<(weightBits-1))
	s, k, left := GP64(), GP64(), GP64()

	step := func(first bool) { // adds the interleaved bytes of a and b
		VPBROADCASTD(at(k, 0), kh)
		VPBROADCASTD(at(k, 4), kl)
		ADDQ(Imm(8), k)
		lo, hi := t, a
		VPUNPCKLBW(b, a, lo)
		VPUNPCKHBW(b, a, hi)
		group := func(i int) {
			if first {
				VPMADDWD(w, kh, h[i])
				VPMADDWD(w, kl, l[i])
				VPADDD(half, l[i], l[i])
				return
			}
			VPMADDWD(w, kh, b)
			VPADDD(b, h[i], h[i])
			VPMADDWD(w, kl, b)
			VPADDD(b, l[i], l[i])
		}
		VPUNPCKLBW(zero, lo, w)
		group(0)
		VPUNPCKHBW(zero, lo, w)
		group(1)
		VPUNPCKLBW(zero, hi, w)
		group(2)
		VPUNPCKHBW(zero, hi, w)
		group(3)
	}
	blocks(n, 32, func(i GPVirtual) {
		LEAQ(index(src, i, 1, 0), s)
		MOVQ(k0, k)
		MOVQ(taps, left)
		pair := func(first bool) {
			VMOVDQU(at(s, 0), a)
			VMOVDQU(index(s, stride, 1, 0), b)
			LEAQ(index(s, stride, 2, 0), s)
			step(first)
			SUBQ(Imm(2), left)
		}
		single := func(first bool) {
			VMOVDQU(at(s, 0), a)
			VPXOR(b, b, b)
			step(first)
		}
		SUBQ(Imm(2), left)
		JLT(LabelRef("one"))
		pair(true)
		JLT(LabelRef("single"))
		Label("pair")
		pair(false)
		JGE(LabelRef("pair"))
		Label("single")
		CMPQ(left, I32(-1))
		JNE(LabelRef("store"))
		single(false)
		JMP(LabelRef("store"))
		Label("one")
		single(true)
		Label("store")
		for j := range h {
			combine(h[j], l[j])
		}
		VPACKSSDW(l[1], l[0], l[0])
		VPACKSSDW(l[3], l[2], l[2])
		VPACKUSWB(l[2], l[0], l[0])
		VMOVDQU(l[0], index(dst, i, 1, 0))
	})
	finish()
}

// resizeGray resizes four rows of single bytes: a register holds 8 inputs of two rows, one
// in each half, and the sums are added up across at the end.
func resizeGray() {
	function("resizeGray", "func(dst, src *byte, dstStride, srcStride int, start *int32, k *[2][8]int16, n, chunks, x0 int)",
		"resizeGray makes n bytes of each of 4 rows, whose first byte is input x0, of 8*chunks inputs each.")
	dst, src := param("dst"), param("src")
	ds, ss := param("dstStride"), param("srcStride")
	start, k, n, chunks, x0 := param("start"), param("k"), param("n"), param("chunks"), param("x0")
	ds3, ss3 := GP64(), GP64()
	LEAQ(index(ds, ds, 2, 0), ds3)
	LEAQ(index(ss, ss, 2, 0), ss3)
	SUBQ(x0, src)
	half := XMM()
	VMOVDQU(broadcastOnce("roundHalf", 1<<(weightBits-1)), half)
	s, left := GP64(), GP64()
	h, l := [2]VecVirtual{YMM(), YMM()}, [2]VecVirtual{YMM(), YMM()}
	Label("pixel")
	MOVLQSX(at(start, 0), s)
	ADDQ(src, s)
	for i := range h {
		VPXOR(h[i], h[i], h[i])
		VPXOR(l[i], l[i], l[i])
	}
	MOVQ(chunks, left)
	Label("chunk")
	kh, kl, p, t := YMM(), YMM(), YMM(), YMM()
	VBROADCASTI128(at(k, 0), kh)
	VBROADCASTI128(at(k, 16), kl)
	rows := [2][2]Mem{{at(s, 0), index(s, ss, 1, 0)}, {index(s, ss, 2, 0), index(s, ss3, 1, 0)}}
	for i, r := range rows {
		VMOVQ(r[0], p.AsX())
		VPINSRQ(Imm(1), r[1], p.AsX(), p.AsX())
		VPMOVZXBW(p.AsX(), p)
		VPMADDWD(p, kh, t)
		VPADDD(t, h[i], h[i])
		VPMADDWD(p, kl, t)
		VPADDD(t, l[i], l[i])
	}
	ADDQ(Imm(32), k)
	ADDQ(Imm(8), s)
	DECQ(left)
	JNZ(LabelRef("chunk"))
	for i := range h {
		VPSLLD(Imm(lowBits), h[i], h[i])
		VPADDD(h[i], l[i], l[i])
	}
	VPHADDD(l[1], l[0], l[0]) // of rows 0, 0, 2, 2 | 1, 1, 3, 3
	VPHADDD(l[0], l[0], l[0]) // 0, 2, 0, 2 | 1, 3, 1, 3
	x := XMM()
	VEXTRACTI128(Imm(1), l[0], x)
	VPUNPCKLDQ(x, l[0].AsX(), x) // 0, 1, 2, 3
	VPADDD(half, x, x)
	VPSRAD(Imm(weightBits), x, x)
	VPACKSSDW(x, x, x)
	VPACKUSWB(x, x, x)
	VPEXTRB(Imm(0), x, at(dst, 0))
	VPEXTRB(Imm(1), x, index(dst, ds, 1, 0))
	VPEXTRB(Imm(2), x, index(dst, ds, 2, 0))
	VPEXTRB(Imm(3), x, index(dst, ds3, 1, 0))
	INCQ(dst)
	ADDQ(Imm(4), start)
	DECQ(n)
	JNZ(LabelRef("pixel"))
	finish()
}
