// Command _asm writes kernels_amd64.s and kernels_amd64.go of package kernel: AVX2 and
// AVX-512 spellings of its loops. Each function here has in package kernel a Go loop that says what it computes.
//
// Conventions: a kernel takes at least one whole block of elements, does all whole blocks,
// and if some elements are left, does the last block again from where it overlaps. It reads
// and writes nothing beyond the elements named, and does not allocate or call.
package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	resizeRows()
	resizeGray()
	resizeColumn()
	norm("normF32x8", exact, storeF32)
	norm("normF16", exact, storeF16)
	norm("normBF16", exact, storeBF16)
	norm("affineF16x8", affine, storeF16)
	norm("affineBF16x8", affine, storeBF16)
	planesNorm("planesF32x8", exact, storeF32)
	planesNorm("planesF16", exact, storeF16)
	planesNorm("planesBF16", exact, storeBF16)
	planesNorm("affinePlanesF16x8", affine, storeF16)
	planesNorm("affinePlanesBF16x8", affine, storeBF16)
	normWide("normF32x16", "normF32x8", wideExact, wideF32)
	normWide("affineF16x16", "affineF16x8", wideAffine, wideF16)
	normWide("affineBF16x16", "affineBF16x8", wideAffine, wideBF16)
	planesWide("planesF32x16", "planesF32x8", wideExact, wideF32)
	planesWide("affinePlanesF16x16", "affinePlanesF16x8", wideAffine, wideF16)
	planesWide("affinePlanesBF16x16", "affinePlanesBF16x8", wideAffine, wideBF16)
	planes()
	interleave()
	pack()
	gray()
	reverse1()
	reverse3()
	reverseRows("reverseRows16", 16)
	reverseRows("reverseRows32", 32)
	moments()
	sum32()
	squares32()
	piecesOf("pieces32x8", YMM, "pieces32x8 sums n > 0 pieces of 1024 numbers, in lanes, and the squares around their means.")
	piecesOf("pieces32x16", ZMM, "pieces32x16 is pieces32x8 with registers of 16 numbers.")
	widen16()
	crc32c()
	arrays()
	prefetch()
	Generate()
}

// function begins a kernel.
func function(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(strings.Split(doc, "\n")...)
}

// finish ends a kernel.
func finish() {
	VZEROUPPER()
	RET()
}

// prefetch asks for all cache lines of some bytes.
func prefetch() {
	function("prefetchLines", "func(p *byte, n int)", "prefetchLines begins to load n > 0 bytes to the caches.")
	p, n := param("p"), param("n")
	ADDQ(p, n)
	ANDQ(I32(-64), p)
	Label("loop")
	PREFETCHT0(at(p, 0))
	ADDQ(Imm(64), p)
	CMPQ(p, n)
	JLT(LabelRef("loop"))
	RET()
}

// param loads a parameter into a register.
func param(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// blocks emits a loop over n elements in blocks: body works on the element at i. i is set
// back once so that the last block ends at n.
func blocks(n GPVirtual, block int, body func(i GPVirtual)) {
	i, last := GP64(), GP64()
	XORQ(i, i)
	MOVQ(n, last)
	SUBQ(Imm(uint64(block)), last)
	Label("block")
	body(i)
	CMPQ(i, last)
	JGE(LabelRef("done"))
	ADDQ(Imm(uint64(block)), i)
	CMPQ(i, last)
	JLE(LabelRef("block"))
	MOVQ(last, i)
	JMP(LabelRef("block"))
	Label("done")
}

// broadcast returns a vector constant of 8 equal 32-bit values.
func broadcast(name string, v uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(i*4, U32(v))
	}
	return m
}

func at(base Register, disp int) Mem { return Mem{Base: base, Disp: disp} }

func index(base, i Register, scale uint8, disp int) Mem {
	return Mem{Base: base, Index: i, Scale: scale, Disp: disp}
}
