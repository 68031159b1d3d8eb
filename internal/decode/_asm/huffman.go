package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// What huffmanBlock returns as its status; the package has the same names.
const (
	blockFlat    = iota // no coefficient but the first
	blockFull           // others too
	blockHungry         // bits must be filled in otherwise
	blockUnknown        // a code that is in no table, or is none
	blockOdd            // the entry led beyond the block
)

const (
	fastAt = 1024 // of huffTable.fast: look stands before it
	none   = 0xF0 // the symbol of sixteen zeros
)

// huffmanBlock is bitReader.difference and block, up to what is rare. The way from the bits to
// those behind an entry is what limits it: one shift, a load, another shift, for which the
// length of an entry is in its lowest six bits, those that a shift looks at. n is right only in
// these, too, while entries are taken off.
func huffmanBlock() {
	function("huffmanBlock", "func(state *[3]uint64, data *byte, end int, b *int16, dc, ac *[512]uint16, pred *int32, zigzag *byte, k int)"+
		" (status, k1, last int, entry uint32, before uint64)",
		"huffmanBlock decodes a block from k on, from its difference on, which it adds to pred, where k is -1. state is pos,\n"+
			"acc and n of a bitReader; 8 bytes at data+end are the last of the file, dc and ac the beginnings of huffTables. Where\n"+
			"status is hungry or unknown, it stopped behind k1; where it is odd, behind the entry found in the bits before, whose\n"+
			"coefficients are k1 and last.")
	h := &huffman{
		b: param("b"), ac: param("ac"), zigzag: param("zigzag"), k: param("k"),
		pos: GP64(), acc: GP64(), n: GP64(), before: GP64(), entry: GP64(), last: GP64(),
	}
	state := param("state")
	MOVQ(at(state, 0), h.pos)
	MOVQ(at(state, 8), h.acc)
	MOVQ(at(state, 16), h.n)
	CMPQ(h.k, Imm(0))
	JGE(LabelRef("group"))
	h.difference()

	Label("group")
	h.fill(55, "blockBits")
	for range 5 {
		h.look(h.ac, "long")
		h.take()
		h.put()
	}
	ANDQ(Imm(63), h.n)
	JMP(LabelRef("group"))

	h.long()
	status := GP64()
	h.behind(status)

	Label("hungry")
	MOVQ(U32(blockHungry), status)
	JMP(LabelRef("stop"))
	Label("unknown")
	MOVQ(U32(blockUnknown), status)
	JMP(LabelRef("stop"))
	Label("odd")
	MOVQ(U32(blockOdd), status)
	Store(h.last, Return("last"))
	Store(h.entry.As32(), Return("entry"))
	Store(h.before, Return("before"))
	Label("stop")
	Store(h.k, Return("k1"))
	Label("done")
	ANDQ(Imm(63), h.n)
	state = param("state")
	MOVQ(h.pos, at(state, 0))
	MOVQ(h.acc, at(state, 8))
	MOVQ(h.n, at(state, 16))
	Store(status, Return("status"))
	RET()
}

// difference takes the first coefficient.
func (h *huffman) difference() {
	dc, diff := param("dc"), GP32()
	h.fill(32, "differenceBits")
	h.look(dc, "unknown")
	h.take()
	ANDQ(Imm(63), h.n)
	SARL(Imm(23), h.entry.As32())
	pred := param("pred")
	MOVL(at(pred, 0), diff)
	ADDL(h.entry.As32(), diff)
	MOVL(diff, at(pred, 0))
	XORQ(h.k, h.k)
}

// long takes a coefficient for which the fast table is too small, by its code alone.
func (h *huffman) long() {
	Label("long")
	ANDQ(Imm(63), h.n)
	h.fill(32, "longBits")
	symbol, length, v, sign := GP64(), h.last, h.before, h.entry
	MOVQ(h.acc, symbol)
	SHRQ(Imm(55), symbol)
	MOVWQZX(index(h.ac, symbol, 2), symbol)
	MOVQ(symbol, length)
	ANDQ(Imm(31), length)
	JZ(LabelRef("unknown"))
	SHLXQ(length, h.acc, h.acc)
	SUBQ(length, h.n)
	SHRQ(Imm(8), symbol)
	MOVQ(symbol, length) // of the value, now
	ANDQ(Imm(15), length)
	JZ(LabelRef("zeros"))
	SHRQ(Imm(4), symbol)
	LEAQ(Mem{Base: h.k, Index: symbol, Scale: 1, Disp: 1}, h.k)
	MOVQ(h.acc, sign) // v - (1<<length - 1) where the highest bit is 0
	SARQ(Imm(63), sign)
	NOTQ(sign)
	MOVQ(I32(-1), v)
	SHLXQ(length, v, v)
	INCQ(v)
	ANDQ(v, sign)
	MOVQ(length, v)
	NEGQ(v)
	SHRXQ(v, h.acc, v)
	ADDQ(sign, v)
	SHLXQ(length, h.acc, h.acc)
	SUBQ(length, h.n)
	CMPQ(h.k, Imm(63))
	JG(LabelRef("beyond"))
	MOVBQZX(index(h.zigzag, h.k, 1), symbol)
	MOVW(v.As16(), index(h.b, symbol, 2))
	JE(LabelRef("full"))
	JMP(LabelRef("group"))

	Label("zeros")
	CMPQ(symbol, U32(none))
	JNE(LabelRef("end"))
	ADDQ(Imm(16), h.k)
	CMPQ(h.k, Imm(63))
	JL(LabelRef("group"))
	JE(LabelRef("full"))
	Label("beyond") // an entry of no length and two steps to nowhere
	XORQ(h.entry, h.entry)
	MOVQ(h.k, h.last)
	JMP(LabelRef("odd"))
}

// behind says what was at the end of a block: last is 63 or more.
func (h *huffman) behind(status GPVirtual) {
	Label("ended")
	CMPQ(h.last, Imm(63))
	JNE(LabelRef("further"))
	MOVL(h.entry.As32(), h.last.As32())
	ANDL(U32(63<<6), h.last.As32())
	CMPL(h.last.As32(), U32(63<<6))
	JNE(LabelRef("full"))
	Label("flat")
	MOVQ(U32(blockFlat), status)
	JMP(LabelRef("done"))
	Label("end")
	TESTQ(h.k, h.k)
	JZ(LabelRef("flat"))
	Label("full")
	MOVQ(U32(blockFull), status)
	JMP(LabelRef("done"))

	Label("further")
	h.leads(6)
	CMPQ(h.k, Imm(63))
	JGE(LabelRef("odd"))
	h.leads(12)
	JMP(LabelRef("odd"))
}

// leads goes to full if the step at that bit of the entry is the end of the block.
func (h *huffman) leads(from int) {
	step := GP32()
	MOVL(h.entry.As32(), step)
	ANDL(U32(63<<from), step)
	CMPL(step, U32(63<<from))
	JE(LabelRef("full"))
}

// huffman names the registers.
type huffman struct {
	b, ac, zigzag, k                 GPVirtual
	pos, acc, n, before, entry, last GPVirtual
}

// fill makes n at least enough, as bitReader.fill does without a byte 0xFF.
func (h *huffman) fill(enough int, label string) {
	CMPQ(h.n, Imm(uint64(enough)))
	JGE(LabelRef(label))
	w, t, c := GP64(), GP64(), GP64()
	CMPQ(h.pos, argument("end"))
	JG(LabelRef("hungry"))
	MOVQ(argument("data"), w)
	MOVQ(index(w, h.pos, 1), w)
	BSWAPQ(w)
	MOVQ(w, t)
	NOTQ(t)
	MOVQ(U64(0xfefefefefefefeff), c)
	ADDQ(c, t)
	ANDQ(w, t)
	MOVQ(U64(0x8080808080808080), c)
	TESTQ(c, t)
	JNZ(LabelRef("hungry"))
	SHRXQ(h.n, w, w)
	ORQ(w, h.acc)
	MOVQ(U32(63), t)
	SUBQ(h.n, t)
	SHRQ(Imm(3), t)
	ADDQ(t, h.pos)
	ORQ(Imm(56), h.n)
	Label(label)
}

// argument is a parameter where it lies.
func argument(name string) Mem {
	c, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return c.Addr
}

// look finds the entry of the next bits.
func (h *huffman) look(table GPVirtual, missing string) {
	MOVQ(h.acc, h.before)
	MOVQ(h.acc, h.entry)
	SHRQ(Imm(53), h.entry)
	MOVL(Mem{Base: table, Index: h.entry, Scale: 4, Disp: fastAt}, h.entry.As32())
	TESTL(h.entry.As32(), h.entry.As32())
	JZ(LabelRef(missing))
}

func (h *huffman) take() {
	SHLXQ(h.entry, h.acc, h.acc)
	SUBQ(h.entry, h.n)
}

// put writes the two coefficients of the entry; where the second is none, the first is
// written over it.
func (h *huffman) put() {
	at, v := GP64(), GP32()
	field := func(from, bits int) {
		MOVL(h.entry.As32(), v)
		SHLL(Imm(uint64(32-from-bits)), v)
		SARL(Imm(uint64(32-bits)), v)
	}
	step := func(from int) {
		MOVL(h.entry.As32(), at.As32())
		SHRL(Imm(uint64(from)), at.As32())
		ANDL(Imm(63), at.As32())
	}
	step(6)
	ADDQ(at, h.k)
	step(12)
	MOVQ(h.k, h.last)
	ADDQ(at, h.last)
	MOVBQZX(index(h.zigzag, h.last, 1), at)
	field(18, 5)
	MOVW(v.As16(), index(h.b, at, 2))
	MOVBQZX(index(h.zigzag, h.k, 1), at)
	MOVL(h.entry.As32(), v)
	SARL(Imm(23), v)
	MOVW(v.As16(), index(h.b, at, 2))
	CMPQ(h.last, Imm(63))
	JGE(LabelRef("ended"))
	MOVQ(h.last, h.k)
}
