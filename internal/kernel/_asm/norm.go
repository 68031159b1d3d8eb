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
	return once(name, func() Mem { return broadcast(name, v) })
}

// bytesOnce is a constant of n bytes that several kernels share.
func bytesOnce(name string, n int, of func(i int) byte) Mem {
	return once(name, func() Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i := range n {
			DATA(i, U8(of(i)))
		}
		return m
	})
}

// once makes a constant unless a constant of that name exists.
func once(name string, make func() Mem) Mem {
	if _, ok := constants[name]; !ok {
		constants[name] = make()
	}
	return constants[name]
}

// A formula turns the bytes 0 to 255 into numbers. It loads its coefficients for three phases of
// 8 elements from the table.
type formula struct {
	table string // Go type
	doc   string
	load  func(table GPVirtual) converter
}

// A converter turns the integers in x into numbers, by phase i.
type converter struct {
	convert func(i int, x VecVirtual)
	widen   func(mask VecVirtual) // changes a mask that would make 32-bit integers of bytes
}

// exact is (x*unit - mean) * std with std in two parts, whose product is the quotient by
// the number whose reciprocal they are.
//
// If unit is 1/255, x is three equal bytes, as an integer: the integer part of x/255*2^24. That is
// another x/255, so that the sum of x and x/2^24, rounded, is x/255*2^24, rounded. The other
// coefficients are scaled to that.
var exact = formula{"*[11][8]float32", "in float32, rounded after each step", func(table GPVirtual) converter {
	row := func(i int) Mem { return at(table, i*32) }
	again, bytes, high := YMM(), YMM(), YMM()
	VMOVUPS(row(0), again)
	VMOVDQU(row(1), bytes)
	VPAND(broadcastOnce("highBits", 0x80808080), bytes, high)
	var hi, lo [3]VecVirtual
	for i := range 3 {
		hi[i], lo[i] = YMM(), YMM()
		VMOVUPS(row(3*i+3), hi[i])
		VMOVUPS(row(3*i+4), lo[i])
	}
	t := YMM()
	return converter{
		convert: func(i int, x VecVirtual) {
			VCVTDQ2PS(x, x)
			VFMADD231PS(x, again, x) // x = x*again + x
			VSUBPS(row(3*i+2), x, x)
			VMULPS(lo[i], x, t)
			VFMADD213PS(t, hi[i], x) // x = x*hi + t
		},
		widen: func(mask VecVirtual) {
			VPSHUFB(bytes, mask, mask)
			VPOR(high, mask, mask)
		},
	}
}}

// affine is x*scale + bias, rounded once: less than exact, but as a rule the same when
// rounded to 16 bits.
var affine = formula{"*[6][8]float32", "by one multiplication and addition", func(table GPVirtual) converter {
	var k [6]VecVirtual
	for i := range k {
		k[i] = YMM()
		VMOVUPS(at(table, i*32), k[i])
	}
	return converter{
		convert: func(i int, x VecVirtual) {
			VCVTDQ2PS(x, x)
			VFMADD213PS(k[2*i+1], k[2*i], x)
		},
		widen: func(VecVirtual) {},
	}
}}

// norm emits the kernel for neighboring bytes.
func norm(name string, f formula, s store) {
	function(name, "func(dst *"+s.goType+", src *byte, n int, table "+f.table+")",
		name+" converts n >= 24 bytes "+f.doc+".\nPhase i of the table is for bytes 8i to 8i+7 of each 24.")
	dst, src, n := param("dst"), param("src"), param("n")
	c := f.load(param("table"))
	mask := YMM()
	VMOVDQU(eightBytes(), mask)
	c.widen(mask)
	blocks(n, 24, func(i GPVirtual) {
		for j := range 3 {
			x := YMM()
			VPBROADCASTQ(index(src, i, 1, 8*j), x)
			VPSHUFB(mask, x, x)
			c.convert(j, x)
			s.emit(x, dst, i, 8*j)
		}
	})
	finish()
}

// eightBytes returns the mask that makes 32-bit integers of 8 bytes.
func eightBytes() Mem {
	return bytesOnce("eightBytes", 32, func(i int) byte {
		if i%4 == 0 {
			return byte(i / 4)
		}
		return byte(z)
	})
}

// planesNorm emits the kernel for pixels, whose channels go to three arrays.
func planesNorm(name string, f formula, s store) {
	function(name, "func(red, green, blue *"+s.goType+", src *byte, n, step int, mask *[3][32]byte, table "+f.table+")",
		name+" converts n >= 8 pixels "+f.doc+".\nPhase i of the table is for channel i.")
	dst := [3]GPVirtual{param("red"), param("green"), param("blue")}
	src, n, step, mask := param("src"), param("n"), param("step"), param("mask")
	c := f.load(param("table"))
	var masks [3]VecVirtual
	for i := range masks {
		masks[i] = YMM()
		VMOVDQU(at(mask, 32*i), masks[i])
		c.widen(masks[i])
	}
	i, eight, last := GP64(), GP64(), GP64()
	MOVQ(step, eight)
	SHLQ(Imm(3), eight)
	pixels := func() {
		px, x := YMM(), YMM()
		VMOVDQU(at(src, 0), px.AsX())
		VINSERTI128(Imm(1), index(src, eight, 1, -16), px, px) // where the 8 pixels end
		for j := range 3 {
			VPSHUFB(masks[j], px, x)
			c.convert(j, x)
			s.emit(x, dst[j], i, 0)
		}
	}
	XORQ(i, i)
	MOVQ(n, last)
	SUBQ(Imm(8), last)
	Label("pixels")
	pixels()
	ADDQ(eight, src)
	ADDQ(Imm(8), i)
	CMPQ(i, last)
	JLE(LabelRef("pixels"))
	SUBQ(i, last)
	CMPQ(last, I32(-8))
	JE(LabelRef("done"))
	ADDQ(last, i) // the last 8 once more, as far as they are done
	IMULQ(step, last)
	ADDQ(last, src)
	pixels()
	Label("done")
	finish()
}
