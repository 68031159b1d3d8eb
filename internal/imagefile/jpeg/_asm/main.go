// Command _asm writes kernels_amd64.s and kernels_amd64.go of package jpeg: AVX2 spellings
// of its loops. Each function here has in package jpeg a Go loop that says what it computes.
//
// Conventions: a kernel over a row takes at least one whole block of elements, does all whole
// blocks, and if some elements are left, does the last block again from where it overlaps.
// It reads and writes nothing beyond the elements named, and does not allocate or call.
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

// quad returns a constant of 64 bits, the same for each name.
func quad(name string, v uint64) Mem {
	if _, ok := quads[name]; !ok {
		quads[name] = GLOBL(name, RODATA|NOPTR)
		DATA(0, U64(v))
	}
	return quads[name]
}

var quads = map[string]Mem{}

// address is where a parameter or result lies.
func address(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

func at(base Register, disp int) Mem { return Mem{Base: base, Disp: disp} }

func index(base, i Register, scale uint8) Mem {
	return Mem{Base: base, Index: i, Scale: scale}
}
