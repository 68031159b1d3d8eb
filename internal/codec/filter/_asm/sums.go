package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// byteSums adds up 32 bytes at a time. before sums the value of a before each block of 32
// bytes; in the second sum that value counts 32 times, besides the bytes of the block by their
// places.
func byteSums() {
	function("byteSumsAVX2", "func(p *byte, n int) (a, b uint32)",
		"byteSumsAVX2 is byteSums for n bytes, a multiple of 32 from 32 to 5536.")
	var weights [32]byte
	for i := range weights {
		weights[i] = byte(32 - i)
	}
	p, n := param("p"), param("n")
	w, one, zero := constant("byteWeights", weights), ones("byteOnes"), zeros()
	a, before, b := zeros(), zeros(), zeros()
	x, y := YMM(), YMM()
	each(p, n, func() {
		VMOVDQU(Mem{Base: p}, x)
		VPADDQ(a, before, before)
		VPSADBW(zero, x, y)
		VPADDQ(y, a, a)
		VPMADDUBSW(w, x, y)
		VPMADDWD(one, y, y)
		VPADDD(y, b, b)
	})
	finish(total(a, 0, nil), total(before, 5, b))
}

// wordSums is byteSums for words, whose high bytes come first.
func wordSums() {
	function("wordSumsAVX2", "func(p *byte, n int) (a, b uint32)",
		"wordSumsAVX2 is wordSums for n bytes, a multiple of 32 from 32 to 704.")
	var high, low, even [32]byte
	for i := 0; i < 32; i += 2 {
		high[i], low[i+1], even[i] = byte(16-i/2), byte(16-i/2), 255
	}
	p, n := param("p"), param("n")
	wh, wl, mask := constant("highWeights", high), constant("lowWeights", low), constant("highBytes", even)
	one, zero := ones("wordOnes"), zeros()
	a, before, b := zeros(), zeros(), zeros()
	x, h, l := YMM(), YMM(), YMM()
	each(p, n, func() {
		VMOVDQU(Mem{Base: p}, x)
		VPADDQ(a, before, before)
		VPAND(mask, x, h)
		VPSRLW(Imm(8), x, l)
		VPSADBW(zero, h, h)
		VPSADBW(zero, l, l)
		VPSLLQ(Imm(8), h, h)
		VPADDQ(h, a, a)
		VPADDQ(l, a, a)
		VPMADDUBSW(wh, x, h)
		VPMADDUBSW(wl, x, l)
		VPMADDWD(one, h, h)
		VPMADDWD(one, l, l)
		VPSLLD(Imm(8), h, h)
		VPADDD(h, b, b)
		VPADDD(l, b, b)
	})
	finish(total(a, 0, nil), total(before, 4, b))
}
