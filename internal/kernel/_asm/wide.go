package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A wideStore is a store of 16 numbers.
type wideStore store

var (
	wideF32 = wideStore{"float32", func(v VecVirtual, base, i Register, disp int) {
		VMOVUPS(v, index(base, i, 4, disp*4))
	}}
	wideF16 = wideStore{"uint16", func(v VecVirtual, base, i Register, disp int) {
		y := YMM()
		VCVTPS2PH(Imm(0), v, y)
		VMOVDQU(y, index(base, i, 2, disp*2))
	}}
	wideBF16 = wideStore{"uint16", func(v VecVirtual, base, i Register, disp int) {
		y, half := YMM(), ZMM()
		VPBROADCASTD(broadcastOnce("bf16Half", 0x8000), half)
		VPADDD(half, v, v)
		VPSRLD(Imm(16), v, v)
		VPMOVDW(v, y)
		VMOVDQU(y, index(base, i, 2, disp*2))
	}}
)

// A wideFormula is a formula for 16 elements: element j of the register i has the coefficients
// of column j%8, of phase first[i] or, from column 8 on, second[i]. It returns what converts
// the integers in x by register i, and which bytes of these are not zero.
type wideFormula struct {
	table, doc string
	load       func(table GPVirtual, first, second [3]int) (keep Register, convert func(i int, x VecVirtual))
}

var wideExact = wideFormula{exact.table, exact.doc, func(table GPVirtual, first, second [3]int) (Register,
	func(int, VecVirtual)) {
	again, bytes := bothRows(table, 0, 0), bothRows(table, 1, 1)
	drop, keep := K(), K()
	VPMOVB2M(bytes, drop)
	KNOTQ(drop, keep)
	var mean, hi, lo [3]VecVirtual
	for i := range 3 {
		a, b := 3*first[i]+2, 3*second[i]+2
		mean[i], hi[i], lo[i] = bothRows(table, a, b), bothRows(table, a+1, b+1), bothRows(table, a+2, b+2)
	}
	t := ZMM()
	return keep, func(i int, x VecVirtual) {
		VCVTDQ2PS(x, x)
		VFMADD231PS(x, again, x) // x = x*again + x
		VSUBPS(mean[i], x, x)
		VMULPS(lo[i], x, t)
		VFMADD213PS(t, hi[i], x) // x = x*hi + t
	}
}}

var wideAffine = wideFormula{affine.table, affine.doc, func(table GPVirtual, first, second [3]int) (Register,
	func(int, VecVirtual)) {
	lowest, keep := GP64(), K()
	MOVQ(U64(0x1111111111111111), lowest)
	KMOVQ(lowest, keep)
	var scale, bias [3]VecVirtual
	for i := range 3 {
		a, b := 2*first[i], 2*second[i]
		scale[i], bias[i] = bothRows(table, a, b), bothRows(table, a+1, b+1)
	}
	return keep, func(i int, x VecVirtual) {
		VCVTDQ2PS(x, x)
		VFMADD213PS(bias[i], scale[i], x)
	}
}}

// bothRows loads two rows of a table.
func bothRows(table GPVirtual, a, b int) VecVirtual {
	v := ZMM()
	VMOVUPS(at(table, 32*a), v.AsY())
	VINSERTF64X4(Imm(1), at(table, 32*b), v, v)
	return v
}

// normWide emits the kernel that norm emits, for registers of 16 elements.
func normWide(name, narrow string, f wideFormula, s wideStore) {
	function(name, "func(dst *"+s.goType+", src *byte, n int, table "+f.table+")",
		name+" is "+narrow+" for n >= 48 bytes.")
	dst, src, n := param("dst"), param("src"), param("n")
	keep, convert := f.load(param("table"), [3]int{0, 2, 1}, [3]int{1, 0, 2})
	order := ZMM()
	VMOVDQU64(sixteenBytes(), order)
	blocks(n, 48, func(i GPVirtual) {
		for j := range 3 {
			x := ZMM()
			VBROADCASTI32X4(index(src, i, 1, 16*j), x)
			VPSHUFB_Z(order, x, keep, x)
			convert(j, x)
			s.emit(x, dst, i, 16*j)
		}
	})
	finish()
}

// sixteenBytes returns where each of 16 bytes is, four times.
func sixteenBytes() Mem {
	return bytesOnce("sixteenBytes", 64, func(i int) byte { return byte(i / 4) })
}

// planesWide emits the kernel that planesNorm emits, for registers of 16 elements.
func planesWide(name, narrow string, f wideFormula, s wideStore) {
	function(name, "func(red, green, blue *"+s.goType+", src *byte, n, step int, order *[3][64]byte, table "+f.table+")",
		name+" is "+narrow+" for n >= 16 pixels. order says of each channel where its bytes are, each four times.")
	dst := [3]GPVirtual{param("red"), param("green"), param("blue")}
	src, n, step, orders := param("src"), param("n"), param("step"), param("order")
	keep, convert := f.load(param("table"), [3]int{0, 1, 2}, [3]int{0, 1, 2})
	var order [3]VecVirtual
	for c := range order {
		order[c] = ZMM()
		VMOVDQU64(at(orders, 64*c), order[c])
	}
	read := sixteenPixels(step)
	blocks(n, 16, func(i GPVirtual) {
		at, px, x := GP64(), ZMM(), ZMM()
		MOVQ(i, at)
		IMULQ(step, at)
		VMOVDQU8_Z(index(src, at, 1, 0), read, px)
		for c := range 3 {
			VPERMB_Z(px, order[c], keep, x)
			convert(c, x)
			s.emit(x, dst[c], i, 0)
		}
	})
	finish()
}

// sixteenPixels returns a mask of the bytes of 16 pixels.
func sixteenPixels(step GPVirtual) Register {
	bytes, all, mask := GP64(), GP64(), K()
	MOVQ(step, bytes)
	SHLQ(Imm(4), bytes)
	MOVQ(I32(-1), all)
	BZHIQ(bytes, all, all) // which keeps all where there are 64
	KMOVQ(all, mask)
	return mask
}
