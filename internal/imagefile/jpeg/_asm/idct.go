package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Constants of libjpeg's jidctint.c: fix0298631336 is 0.298631336 * 2^13, rounded.
const (
	fix0298631336 = 2446
	fix0390180644 = 3196
	fix0541196100 = 4433
	fix0765366865 = 6270
	fix0899976223 = 7373
	fix1175875602 = 9633
	fix1501321110 = 12299
	fix1847759065 = 15137
	fix1961570560 = 16069
	fix2053119869 = 16819
	fix2562915447 = 20995
	fix3072711026 = 25172
)

// factors are the constants of the transform: pairs that VPMADDWD multiplies two interleaved rows
// with and adds (e, y, t, named as the sums in idct1D of package jpeg), the roundings of the two
// passes, and the 128 that makes samples unsigned.
type factors struct{ e2, e3, y3, y4, t0, t3, t1, t2, half11, half18, offset Mem }

// y is the registers by number, for loops over them.
var y = [16]VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15}

// idctPair emits the kernel of idctPair in package jpeg. Each register holds one row of both
// blocks, the first block's row in its low lane and the second block's in its high lane.
// AVX2 works on lanes separately, so the instructions are the instructions of libjpeg's SSE2
// code for one block.
func idctPair() {
	f := factors{
		e2:     words("e2", fix0541196100, fix0541196100-fix1847759065),
		e3:     words("e3", fix0541196100+fix0765366865, fix0541196100),
		y3:     words("y3", fix1175875602-fix1961570560, fix1175875602),
		y4:     words("y4", fix1175875602, fix1175875602-fix0390180644),
		t0:     words("t0", fix0298631336-fix0899976223, -fix0899976223),
		t3:     words("t3", -fix0899976223, fix1501321110-fix0899976223),
		t1:     words("t1", fix2053119869-fix2562915447, -fix2562915447),
		t2:     words("t2", -fix2562915447, fix3072711026-fix2562915447),
		half11: longs("half11", 1<<10),
		half18: longs("half18", 1<<17),
		offset: words("offset", 0x8080),
	}
	function("idctPairKernel", "func(dst *byte, stride int, coefs *[128]int16, quant *[64]uint16)",
		"idctPairKernel dequantises and transforms two blocks to 8 rows of 16 samples.")
	dst, stride := param("dst"), param("stride")
	coefs, quant := param("coefs"), param("quant")
	spill := AllocLocal(64)
	for i := range 8 {
		VMOVDQU(at(coefs, 16*i), y[i].AsX())
		VINSERTI128(Imm(1), at(coefs, 128+16*i), y[i], y[i])
		VBROADCASTI128(at(quant, 16*i), Y8)
		VPMULLW(Y8, y[i], y[i])
	}
	pass(f, spill, f.half11, 11)
	transpose()
	pass(f, spill, f.half18, 18)
	transpose()
	storeRows(dst, stride, f.offset)
	finish()
}

// pass transforms the columns of the 8 rows in Y0 to Y7 in place. Sums of 32 bits take two
// registers a row, so 16 registers are just enough, with one row's sums in spill.
func pass(f factors, spill, half Mem, shift uint64) {
	odd(f, spill)
	even(f)
	// Left: even e0..e3 with their halves in (Y0,Y4) e0, (Y3,Y5) e1, (Y12,Y13) e2', (Y2,Y6) e3'.
	// e0+e3', e0-e3' and so on, each with the odd sum that belongs to it.
	butterfly(Y0, Y4, Y2, Y6)   // Y0,Y4 = even 0; Y2,Y6 = even 3
	butterfly(Y3, Y5, Y12, Y13) // Y3,Y5 = even 1; Y12,Y13 = even 2
	for _, r := range []VecPhysical{Y0, Y4, Y2, Y6, Y3, Y5, Y12, Y13} {
		VPADDD(half, r, r)
	}
	// Odd sums: t3 in Y1,Y7; t2 in Y8,Y9; t1 in Y10,Y11; t0 spilled.
	outputs(Y0, Y4, Y1, Y7, Y14, Y15, shift)     // rows 0, 7 now in Y0, Y1
	outputs(Y3, Y5, Y8, Y9, Y14, Y15, shift)     // rows 1, 6 in Y3, Y8
	outputs(Y12, Y13, Y10, Y11, Y14, Y15, shift) // rows 2, 5 in Y12, Y10
	VMOVDQU(spill, Y14)
	VMOVDQU(spill.Offset(32), Y15)
	outputs(Y2, Y6, Y14, Y15, Y4, Y5, shift) // rows 3, 4 in Y2, Y14
	VMOVDQA(Y1, Y7)
	VMOVDQA(Y3, Y1)
	VMOVDQA(Y2, Y3)
	VMOVDQA(Y12, Y2)
	VMOVDQA(Y14, Y4)
	VMOVDQA(Y10, Y5)
	VMOVDQA(Y8, Y6)
}

// odd makes the odd sums of rows 1, 3, 5, 7: t3 in Y1,Y7 (low and high halves), t2 in Y8,Y9,
// t1 in Y10,Y11, t0 in spill. It leaves the even rows alone.
func odd(f factors, spill Mem) {
	VPADDW(Y3, Y7, Y8) // z3
	VPADDW(Y1, Y5, Y9) // z4
	VPUNPCKLWD(Y9, Y8, Y10)
	VPUNPCKHWD(Y9, Y8, Y11)
	VPMADDWD(f.y3, Y10, Y8)
	VPMADDWD(f.y3, Y11, Y9)
	VPMADDWD(f.y4, Y10, Y10)
	VPMADDWD(f.y4, Y11, Y11)
	VPUNPCKLWD(Y1, Y7, Y12)
	VPUNPCKHWD(Y1, Y7, Y13)
	VPMADDWD(f.t0, Y12, Y14)
	VPMADDWD(f.t0, Y13, Y15)
	VPADDD(Y8, Y14, Y14)
	VPADDD(Y9, Y15, Y15)
	VMOVDQU(Y14, spill)
	VMOVDQU(Y15, spill.Offset(32))
	VPMADDWD(f.t3, Y12, Y1)
	VPMADDWD(f.t3, Y13, Y7)
	VPADDD(Y10, Y1, Y1)
	VPADDD(Y11, Y7, Y7)
	VPUNPCKLWD(Y3, Y5, Y12)
	VPUNPCKHWD(Y3, Y5, Y13)
	VPMADDWD(f.t1, Y12, Y14)
	VPMADDWD(f.t1, Y13, Y15)
	VPADDD(Y14, Y10, Y10)
	VPADDD(Y15, Y11, Y11)
	VPMADDWD(f.t2, Y12, Y14)
	VPMADDWD(f.t2, Y13, Y15)
	VPADDD(Y14, Y8, Y8)
	VPADDD(Y15, Y9, Y9)
}

// even makes the even sums of rows 0, 2, 4, 6: (r0+r4)<<13 in Y0,Y4, (r0-r4)<<13 in Y3,Y5, and
// the products of rows 2 and 6 in Y12,Y13 and Y2,Y6.
func even(f factors) {
	VPADDW(Y4, Y0, Y14)
	VPSUBW(Y4, Y0, Y15)
	VPXOR(Y13, Y13, Y13)
	VPUNPCKLWD(Y14, Y13, Y0)
	VPUNPCKHWD(Y14, Y13, Y4)
	VPUNPCKLWD(Y15, Y13, Y3)
	VPUNPCKHWD(Y15, Y13, Y5)
	for _, r := range []VecPhysical{Y0, Y4, Y3, Y5} {
		VPSRAD(Imm(3), r, r)
	}
	VPUNPCKLWD(Y6, Y2, Y14)
	VPUNPCKHWD(Y6, Y2, Y15)
	VPMADDWD(f.e2, Y14, Y12)
	VPMADDWD(f.e2, Y15, Y13)
	VPMADDWD(f.e3, Y14, Y2)
	VPMADDWD(f.e3, Y15, Y6)
}

// butterfly replaces (aL, aH) by a+b and (bL, bH) by a-b.
func butterfly(aL, aH, bL, bH VecPhysical) {
	VPADDD(bL, aL, Y14)
	VPADDD(bH, aH, Y15)
	VPSUBD(bL, aL, bL)
	VPSUBD(bH, aH, bH)
	VMOVDQA(Y14, aL)
	VMOVDQA(Y15, aH)
}

// outputs makes two rows of words from the sums of an even and an odd half: e+o in eL, e-o in oL,
// both shifted by shift. tL and tH are scratch. VPACKSSDW saturates to 16 bits.
func outputs(eL, eH, oL, oH, tL, tH VecPhysical, shift uint64) {
	VPSUBD(oL, eL, tL)
	VPSUBD(oH, eH, tH)
	VPADDD(oL, eL, eL)
	VPADDD(oH, eH, eH)
	for _, r := range []VecPhysical{eL, eH, tL, tH} {
		VPSRAD(Imm(shift), r, r)
	}
	VPACKSSDW(eH, eL, eL)
	VPACKSSDW(tH, tL, oL)
}

// transpose exchanges rows and columns in each lane of the 8 rows in Y0 to Y7, in three rounds that
// interleave elements of 2, 4 and 8 bytes.
func transpose() {
	for i := 0; i < 8; i += 2 {
		VPUNPCKLWD(y[i+1], y[i], y[8+i])
		VPUNPCKHWD(y[i+1], y[i], y[9+i])
	}
	for i, from := range [][2]int{{8, 10}, {9, 11}, {12, 14}, {13, 15}} {
		VPUNPCKLDQ(y[from[1]], y[from[0]], y[2*i])
		VPUNPCKHDQ(y[from[1]], y[from[0]], y[2*i+1])
	}
	for i := range 4 {
		VPUNPCKLQDQ(y[4+i], y[i], y[8+2*i])
		VPUNPCKHQDQ(y[4+i], y[i], y[9+2*i])
	}
	for i := range 8 {
		VMOVDQA(y[8+i], y[i])
	}
}

// storeRows writes the rows in Y0 to Y7 as bytes to dst, the two blocks next to each other.
// VPACKSSWB saturates to signed bytes; adding 0x80 to each byte makes it a sample.
func storeRows(dst, stride GPVirtual, offset Mem) {
	for i := 0; i < 8; i += 2 {
		VPACKSSWB(y[i+1], y[i], Y8)
		VPADDB(offset, Y8, Y8)
		VEXTRACTI128(Imm(1), Y8, X9)
		VPUNPCKLQDQ(X9, X8, X10)
		VPUNPCKHQDQ(X9, X8, X11)
		VMOVDQU(X10, at(dst, 0))
		VMOVDQU(X11, index(dst, stride, 1))
		if i < 6 {
			LEAQ(index(dst, stride, 2), dst)
		}
	}
}
