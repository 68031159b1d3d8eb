package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A store writes 8 numbers to element i+disp of an array.
type store struct {
	goType string
	emit   func(v VecVirtual, base, i Register, disp int)
}

var (
	storeF32 = store{"float32", func(v VecVirtual, base, i Register, disp int) {
		VMOVUPS(v, index(base, i, 4, disp*4))
	}}
	storeF16 = store{"uint16", func(v VecVirtual, base, i Register, disp int) {
		x := XMM()
		VCVTPS2PH(Imm(0), v, x) // 0: to nearest, halves to even
		VMOVDQU(x, index(base, i, 2, disp*2))
	}}
	storeBF16 = store{"uint16", emitBF16}
)

// emitBF16 rounds to nearest, halves away from zero: a half is so rare among 256 numbers
// that looking for one in advance is cheaper.
func emitBF16(v VecVirtual, base, i Register, disp int) {
	x := XMM()
	VPADDD(broadcastOnce("bf16Half", 0x8000), v, v)
	VPSRLD(Imm(16), v, v)
	VEXTRACTI128(Imm(1), v, x)
	VPACKUSDW(x, v.AsX(), x)
	VMOVDQU(x, index(base, i, 2, disp*2))
}

var constants = map[string]Mem{}

// broadcastOnce is broadcast for constants that several kernels share.
func broadcastOnce(name string, v uint32) Mem {
	if _, ok := constants[name]; !ok {
		constants[name] = broadcast(name, v)
	}
	return constants[name]
}

// A formula makes numbers of the bytes 0 to 255. It loads its coefficients for three phases
// of 8 elements from the table, and returns what converts the 32-bit integers in x by phase i.
type formula struct {
	table string // Go type
	doc   string
	load  func(table GPVirtual) func(i int, x VecVirtual)
}

// exact is (x*unit - mean) * std with both factors in two parts, of which the product is the
// quotient by the number whose reciprocal they are.
var exact = formula{"*[11][8]float32", "in float32, rounded after each step", func(table GPVirtual) func(int, VecVirtual) {
	var k [11]VecVirtual
	for i := range k {
		k[i] = YMM()
		VMOVUPS(at(table, i*32), k[i])
	}
	t := YMM()
	scale := func(x, hi, lo VecVirtual) {
		VMULPS(lo, x, t)
		VFMADD213PS(t, hi, x) // x = hi*x + t
	}
	return func(i int, x VecVirtual) {
		VCVTDQ2PS(x, x)
		scale(x, k[0], k[1])
		VSUBPS(k[3*i+2], x, x)
		scale(x, k[3*i+3], k[3*i+4])
	}
}}

// affine is x*scale + bias, rounded once: less than exact, but as a rule the same when
// rounded to 16 bits.
var affine = formula{"*[6][8]float32", "by one multiplication and addition", func(table GPVirtual) func(int, VecVirtual) {
	var k [6]VecVirtual
	for i := range k {
		k[i] = YMM()
		VMOVUPS(at(table, i*32), k[i])
	}
	return func(i int, x VecVirtual) {
		VCVTDQ2PS(x, x)
		VFMADD213PS(k[2*i+1], k[2*i], x)
	}
}}

// norm emits the kernel for neighbouring bytes.
func norm(name string, f formula, s store) {
	function(name, "func(dst *"+s.goType+", src *byte, n int, table "+f.table+")",
		name+" converts n >= 24 bytes "+f.doc+".\nPhase i of the table is for bytes 8i to 8i+7 of each 24.")
	dst, src, n := param("dst"), param("src"), param("n")
	convert := f.load(param("table"))
	blocks(n, 24, func(i GPVirtual) {
		for j := range 3 {
			x := YMM()
			VPMOVZXBD(index(src, i, 1, 8*j), x)
			convert(j, x)
			s.emit(x, dst, i, 8*j)
		}
	})
	finish()
}

// planesNorm emits the kernel for pixels, whose channels go to three arrays.
func planesNorm(name string, f formula, s store) {
	function(name, "func(red, green, blue *"+s.goType+", src *byte, n, step int, mask *[3][32]byte, table "+f.table+")",
		name+" converts n >= 8 pixels "+f.doc+".\nPhase i of the table is for channel i.")
	dst := [3]GPVirtual{param("red"), param("green"), param("blue")}
	src, n, step, mask := param("src"), param("n"), param("step"), param("mask")
	convert := f.load(param("table"))
	s0, second := GP64(), GP64()
	MOVQ(step, second) // of 8 pixels, the last 16 bytes begin at 8*step - 16
	SHLQ(Imm(3), second)
	SUBQ(Imm(16), second)
	blocks(n, 8, func(i GPVirtual) {
		px, x := YMM(), YMM()
		MOVQ(i, s0)
		IMULQ(step, s0)
		ADDQ(src, s0)
		VMOVDQU(at(s0, 0), px.AsX())
		VINSERTI128(Imm(1), index(s0, second, 1, 0), px, px)
		for c := range 3 {
			VPSHUFB(at(mask, 32*c), px, x)
			convert(c, x)
			s.emit(x, dst[c], i, 0)
		}
	})
	finish()
}
