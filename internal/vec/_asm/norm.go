package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A store writes 8 numbers to element i of an array.
type store struct {
	goType string
	emit   func(v VecVirtual, base, i Register, disp int)
}

var (
	storeF32 = store{"float32", func(v VecVirtual, base, i Register, disp int) {
		VMOVUPS(v, index(base, i, 4, disp*4))
	}}
	storeF16 = store{"uint16", func(v VecVirtual, base, i Register, disp int) {
		VCVTPS2PH(Imm(0), v, index(base, i, 2, disp*2)) // 0: to nearest, halves to even
	}}
	storeBF16 = store{"uint16", emitBF16}
)

// emitBF16 rounds as tensor.BrainOf does: bits + 0x7fff + the lowest bit that stays.
func emitBF16(v VecVirtual, base, i Register, disp int) {
	t, x := YMM(), XMM()
	VPSRLD(Imm(16), v, t)
	VPSLLD(Imm(31), t, t)
	VPSRLD(Imm(31), t, t)
	VPADDD(t, v, v)
	VPADDD(broadcastOnce("bf16Half", 0x7fff), v, v)
	VPSRLD(Imm(16), v, v)
	VEXTRACTI128(Imm(1), v, x)
	VPACKUSDW(x, v.AsX(), v.AsX())
	VMOVDQU(v.AsX(), index(base, i, 2, disp*2))
}

var constants = map[string]Mem{}

// broadcastOnce is broadcast for constants that several kernels share.
func broadcastOnce(name string, v uint32) Mem {
	if _, ok := constants[name]; !ok {
		constants[name] = broadcast(name, v)
	}
	return constants[name]
}

// scale holds the two parts of a reciprocal: x*hi + x*lo rounded is the quotient.
type scale struct{ hi, lo VecVirtual }

func (s scale) emit(x, t VecVirtual) {
	VMULPS(s.lo, x, t)
	VFMADD213PS(t, s.hi, x) // x = hi*x + t
}

// phase holds the coefficients of 8 neighbouring elements.
type phase struct {
	mean VecVirtual
	std  scale
}

// coefficients loads the table: 1/255 or 1 in two parts, then mean and 1/std of 3 phases.
func coefficients() (unit scale, ph [3]phase) {
	table := param("table")
	load := func(i int) VecVirtual {
		v := YMM()
		VMOVUPS(at(table, i*32), v)
		return v
	}
	unit = scale{load(0), load(1)}
	for i := range ph {
		ph[i] = phase{load(3*i + 2), scale{load(3*i + 3), load(3*i + 4)}}
	}
	return unit, ph
}

// convert makes bytes in 32-bit lanes numbers.
func (p phase) convert(unit scale, x, t VecVirtual) {
	VCVTDQ2PS(x, x)
	unit.emit(x, t)
	VSUBPS(p.mean, x, x)
	p.std.emit(x, t)
}

// norm emits the kernel for neighbouring bytes.
func norm(name string, s store) {
	function(name, "func(dst *"+s.goType+", src *byte, n int, table *[11][8]float32)",
		name+" converts n >= 24 bytes; phase i of the table is for bytes 8i to 8i+7 of each 24.")
	dst, src, n := param("dst"), param("src"), param("n")
	unit, ph := coefficients()
	blocks(n, 24, func(i GPVirtual) {
		for j, p := range ph {
			x, t := YMM(), YMM()
			VPMOVZXBD(index(src, i, 1, 8*j), x)
			p.convert(unit, x, t)
			s.emit(x, dst, i, 8*j)
		}
	})
	finish()
}

// planesNorm emits the kernel for pixels, whose channels go to three arrays.
func planesNorm(name string, s store) {
	function(name, "func(red, green, blue *"+s.goType+", src *byte, n, step int, mask *[3][32]byte, table *[11][8]float32)",
		name+" converts n >= 8 pixels; phase i of the table is for channel i.")
	dst := [3]GPVirtual{param("red"), param("green"), param("blue")}
	src, n, step, mask := param("src"), param("n"), param("step"), param("mask")
	unit, ph := coefficients()
	s0, second := GP64(), GP64()
	MOVQ(step, second) // of 8 pixels, the last 16 bytes begin at 8*step - 16
	SHLQ(Imm(3), second)
	SUBQ(Imm(16), second)
	blocks(n, 8, func(i GPVirtual) {
		px, x, t := YMM(), YMM(), YMM()
		MOVQ(i, s0)
		IMULQ(step, s0)
		ADDQ(src, s0)
		VMOVDQU(at(s0, 0), px.AsX())
		VINSERTI128(Imm(1), index(s0, second, 1, 0), px, px)
		for c, p := range ph {
			VPSHUFB(at(mask, 32*c), px, x)
			p.convert(unit, x, t)
			s.emit(x, dst[c], i, 0)
		}
	})
	finish()
}
