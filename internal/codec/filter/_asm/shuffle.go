package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// interleave makes 16 elements at a time: it zips planes of bytes to planes of words, those to
// planes of double words, and so on. If fewer than 16 elements are left, it makes the last 16
// elements, some of them a second time.
func interleave(size int) {
	function(fmt.Sprintf("unshuffle%dAVX2", size), "func(dst, src *byte, n int)",
		fmt.Sprintf("unshuffle%dAVX2 makes n >= 16 elements of %d bytes.", size, size))
	dst, n := param("dst"), param("n")
	planes := []GPVirtual{param("src")}
	for len(planes) < size {
		p := GP64()
		LEAQ(Mem{Base: planes[len(planes)-1], Index: n, Scale: 1}, p)
		planes = append(planes, p)
	}
	i, last := GP64(), GP64()
	XORQ(i, i)
	LEAQ(Mem{Base: n, Disp: -16}, last)
	Label("block")
	x := make([]VecVirtual, size)
	for j, p := range planes {
		x[j] = XMM()
		VMOVDQU(Mem{Base: p, Index: i, Scale: 1}, x[j])
	}
	at := Mem{Base: dst, Index: i, Scale: uint8(size)}
	for _, y := range zip(x, 1) {
		VMOVDQU(y, at)
		at.Disp += 16
	}
	CMPQ(i, last)
	JE(LabelRef("done"))
	ADDQ(Imm(16), i)
	CMPQ(i, last)
	CMOVQGT(last, i)
	JMP(LabelRef("block"))
	Label("done")
	RET()
}

// zip interleaves planes of width bytes per element, and returns the registers in the order of
// their elements.
func zip(x []VecVirtual, width int) []VecVirtual {
	if len(x) == 1 {
		return x
	}
	var low, high []VecVirtual
	for j := 0; j < len(x); j += 2 {
		l, h := XMM(), XMM()
		switch width {
		case 1:
			VPUNPCKLBW(x[j+1], x[j], l)
			VPUNPCKHBW(x[j+1], x[j], h)
		case 2:
			VPUNPCKLWD(x[j+1], x[j], l)
			VPUNPCKHWD(x[j+1], x[j], h)
		case 4:
			VPUNPCKLDQ(x[j+1], x[j], l)
			VPUNPCKHDQ(x[j+1], x[j], h)
		}
		low, high = append(low, l), append(high, h)
	}
	return append(zip(low, 2*width), zip(high, 2*width)...)
}
