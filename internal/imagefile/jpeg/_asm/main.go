// Command _asm writes kernels_amd64.s and kernels_amd64.go of package jpeg: its inner loops for
// AVX2 and BMI2, with the generator avo. Each kernel has in package jpeg a loop in Go that says
// what it computes, and gives the same bytes.
//
// Conventions: a kernel over a row takes at least one whole block of elements, does all whole
// blocks, and if some elements are left, does the last block again from where it overlaps. It reads
// and writes nothing beyond the elements that its arguments name, and does not allocate or call.
package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	huffmanUnits()
	idctPair()
	sumRows()
	doubleColumns()
	yccToRGBX()
	Generate()
}

// function begins a kernel of that name and Go signature. doc becomes the comment of its
// declaration in Go, so a change of doc changes a generated file. The pragma noescape is right
// since no kernel keeps a pointer: without it, arguments would move to the heap.
func function(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(strings.Split(doc, "\n")...)
}

// finish ends a kernel that has used YMM registers: VZEROUPPER spares the SSE code after it a
// penalty.
func finish() {
	VZEROUPPER()
	RET()
}

// param loads a parameter of the kernel into a new register.
func param(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// blocks emits a loop over n elements, block of them at a time: body works on the elements from i
// on. n is at least block. At the end i is set back once, so that the last block ends at n.
func blocks(n GPVirtual, block int, body func(i GPVirtual)) {
	i, last := GP64(), GP64()
	XORQ(i, i)
	MOVQ(n, last)
	SUBQ(Imm(uint64(block)), last)
	Label("block")
	body(i)
	CMPQ(i, last)
	JE(LabelRef("done"))
	ADDQ(Imm(uint64(block)), i)
	CMPQ(i, last)
	CMOVQGT(last, i)
	JMP(LabelRef("block"))
	Label("done")
}

// words returns a vector constant of 16 words, which are pattern repeated.
func words(name string, pattern ...int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(i*2, U16(uint16(pattern[i%len(pattern)])))
	}
	return m
}

// longs returns a vector constant of 8 equal 32-bit values.
func longs(name string, v uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(i*4, U32(v))
	}
	return m
}

// quad returns the address of a constant of 64 bits, the same address for each use of the name.
func quad(name string, v uint64) Mem {
	if _, ok := quads[name]; !ok {
		quads[name] = GLOBL(name, RODATA|NOPTR)
		DATA(0, U64(v))
	}
	return quads[name]
}

// quads are the constants that quad has written so far, by name.
var quads = map[string]Mem{}

// address returns the memory operand of a parameter or result.
func address(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// at returns the memory operand disp bytes after base.
func at(base Register, disp int) Mem { return Mem{Base: base, Disp: disp} }

// index returns the memory operand base + scale*i.
func index(base, i Register, scale uint8) Mem {
	return Mem{Base: base, Index: i, Scale: scale}
}
