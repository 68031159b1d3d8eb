// Command _asm writes kernels_amd64.s and kernels_amd64.go of package hdf5: AVX2 spellings of
// its loops. Each function here has in package filter a Go loop that says what it computes.
//
// Kernels read and write nothing beyond what is named, and do not allocate or call.
package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	byteSums()
	wordSums()
	for _, size := range []int{2, 4, 8} {
		interleave(size)
	}
	transposeBits()
	Generate()
}

// function begins a kernel.
func function(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(strings.Split(doc, "\n")...)
}

// param loads a parameter into a register.
func param(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// zeros returns a register of zeros.
func zeros() VecVirtual {
	r := YMM()
	VPXOR(r, r, r)
	return r
}

// constant returns a register with 32 bytes of its own.
func constant(name string, bytes [32]byte) VecVirtual {
	m, r := GLOBL(name, NOPTR|RODATA), YMM()
	for i, x := range bytes {
		DATA(i, U8(x))
	}
	VMOVDQU(m, r)
	return r
}

// ones returns a register of 16 words of 1.
func ones(name string) VecVirtual {
	var b [32]byte
	for i := 0; i < 32; i += 2 {
		b[i] = 1
	}
	return constant(name, b)
}

// each emits a loop over n bytes from p on, 32 at a time.
func each(p, n GPVirtual, body func()) {
	ADDQ(p, n)
	Label("block")
	body()
	ADDQ(Imm(32), p)
	CMPQ(p, n)
	JL(LabelRef("block"))
}

// total adds the lanes of 64 bits, times 1 << shift, to the lanes of 32 bits, and returns the low half of their sum.
// narrow may be nil, with a shift of 0.
func total(wide VecVirtual, shift uint64, narrow VecVirtual) Register {
	sum := YMM()
	if narrow == nil {
		VMOVDQA(wide, sum)
	} else {
		VPSLLQ(Imm(shift), wide, sum)
		VPADDD(narrow, sum, sum)
	}
	half, low := XMM(), sum.AsX()
	VEXTRACTI128(Imm(1), sum, half)
	VPADDD(half, low, low)
	VPSHUFD(Imm(0x4e), low, half)
	VPADDD(half, low, low)
	VPSHUFD(Imm(0xb1), low, half)
	VPADDD(half, low, low)
	r := GP32()
	VMOVD(low, r)
	return r
}

// finish returns a and b.
func finish(a, b Register) {
	Store(a, ReturnIndex(0))
	Store(b, ReturnIndex(1))
	VZEROUPPER()
	RET()
}
