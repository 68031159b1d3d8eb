package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// array emits a kernel over n numbers, a positive multiple of 8: body works on the 4 numbers
// at i+disp.
func array(name, params, doc string, setup func() (body func(i GPVirtual, disp int))) {
	function(name, "func("+params+")", name+" "+doc+" n is a positive multiple of 8.")
	n, i := param("n"), GP64()
	body := setup()
	XORQ(i, i)
	Label("loop")
	body(i, 0)
	body(i, 4)
	ADDQ(Imm(8), i)
	CMPQ(i, n)
	JLT(LabelRef("loop"))
	finish()
}

// inPlace emits a kernel that changes float64 numbers by two others.
func inPlace(name, a, b, doc string, op func(x, a, b VecVirtual)) {
	array(name, "x *float64, n int, "+a+", "+b+" float64", doc, func() func(GPVirtual, int) {
		p := param("x")
		va, vb := YMM(), YMM()
		for _, v := range []struct {
			name string
			to   VecVirtual
		}{{a, va}, {b, vb}} {
			m, err := Param(v.name).Resolve()
			if err != nil {
				panic(err)
			}
			VBROADCASTSD(m.Addr, v.to)
		}
		return func(i GPVirtual, disp int) {
			x := YMM()
			VMOVUPD(index(p, i, 8, 8*disp), x)
			op(x, va, vb)
			VMOVUPD(x, index(p, i, 8, 8*disp))
		}
	})
}

func arrays() {
	inPlace("standardize64", "mean", "std", "is (x-mean)/std.", func(x, mean, std VecVirtual) {
		VSUBPD(mean, x, x)
		VDIVPD(std, x, x)
	})
	inPlace("scale64", "factor", "offset", "is x*factor + offset, both rounded.", func(x, factor, offset VecVirtual) {
		VMULPD(factor, x, x)
		VADDPD(offset, x, x)
	})
	inPlace("clip64", "lo", "hi", "is lo below it, hi above it, else x, also if that is NaN.", func(x, lo, hi VecVirtual) {
		VMAXPD(x, lo, x) // of equal numbers and with NaN, the first operand here
		VMINPD(x, hi, x)
	})
	array("widen8", "dst *float64, src *byte, n int", "converts bytes.", func() func(GPVirtual, int) {
		dst, src := param("dst"), param("src")
		return func(i GPVirtual, disp int) {
			w, x := XMM(), YMM()
			VPMOVZXBD(index(src, i, 1, disp), w)
			VCVTDQ2PD(w, x)
			VMOVUPD(x, index(dst, i, 8, 8*disp))
		}
	})
	array("widen32", "dst *float64, src *byte, n int", "converts float32 as bytes.", func() func(GPVirtual, int) {
		dst, src := param("dst"), param("src")
		return func(i GPVirtual, disp int) {
			x := YMM()
			VCVTPS2PD(index(src, i, 4, 4*disp), x)
			VMOVUPD(x, index(dst, i, 8, 8*disp))
		}
	})
	array("narrow32", "dst *byte, src *float64, n int", "rounds to float32 as bytes.", func() func(GPVirtual, int) {
		dst, src := param("dst"), param("src")
		return func(i GPVirtual, disp int) {
			x := XMM()
			VCVTPD2PSY(index(src, i, 8, 8*disp), x)
			VMOVUPS(x, index(dst, i, 4, 4*disp))
		}
	})
	array("round32", "x *float64, n int", "rounds to values of float32.", func() func(GPVirtual, int) {
		p := param("x")
		return func(i GPVirtual, disp int) {
			x, y := XMM(), YMM()
			VCVTPD2PSY(index(p, i, 8, 8*disp), x)
			VCVTPS2PD(x, y)
			VMOVUPD(y, index(p, i, 8, 8*disp))
		}
	})
}
