package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// transposeBits exchanges the bits of each 8 bytes that mirror each other at the diagonal: first single
// bits, then squares of two by two bits, then of four by four.
func transposeBits() {
	function("transposeBitsAVX2", "func(p *byte, n int)", "transposeBitsAVX2 is transposeBits for n bytes, a multiple of 32.")
	p, n := param("p"), param("n")
	steps := []struct {
		shift uint64
		mask  VecVirtual
	}{
		{7, words("bits1", 0x00aa00aa00aa00aa)}, {14, words("bits2", 0x0000cccc0000cccc)}, {28, words("bits4", 0x00000000f0f0f0f0)},
	}
	each(p, n, func() {
		x, t := YMM(), YMM()
		at := Mem{Base: p}
		VMOVDQU(at, x)
		for _, s := range steps {
			VPSRLQ(Imm(s.shift), x, t)
			VPXOR(x, t, t)
			VPAND(s.mask, t, t)
			VPXOR(t, x, x)
			VPSLLQ(Imm(s.shift), t, t)
			VPXOR(t, x, x)
		}
		VMOVDQU(x, at)
	})
	VZEROUPPER()
	RET()
}

// words returns a register of four words.
func words(name string, word uint64) VecVirtual {
	var b [32]byte
	for i := range b {
		b[i] = byte(word >> (i % 8 * 8))
	}
	return constant(name, b)
}
