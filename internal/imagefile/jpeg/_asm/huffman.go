package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// unitsDone and the constants after it are the values of huffmanUnits' status. accel_amd64.go of
// package jpeg has the same ones.
const (
	unitsDone   = iota
	unitsHungry // a marker or the end of the file is near: bitReader.fill must refill
	unitsBad    // the bits are not a code
	unitsOdd    // the entry led out of the block
)

// Offsets in bytes in unitBlock and huffTable. accel_amd64.go of package jpeg has the same names,
// and checks that the fields lie there.
const (
	coefsAt, anyAt, dcAt, acAt, predAt, placeAt, stepAt = 0, 24, 48, 56, 64, 72, 80

	blockSize = 88
	fastAt    = 2 << lookBits
	countsAt  = fastAt + 4<<fastBits
	symbolsAt = countsAt + 16
	firstAt   = symbolsAt + 256
	indexAt   = firstAt + 4*17
)

// Constants of package jpeg, with the same meaning there.
const (
	lookBits, fastBits = 9, 11
	fastEnd            = 63
	zeros              = 0xF0 // the symbol of a run of sixteen zeros
)

// huffman names the registers of the kernel. Its methods emit the parts of it, most of them once.
//
// block is the address of the current unitBlock, b the address of the block's coefficients, ac
// its table for coefficients besides the first, zigzag the table of that name, and k the place of
// the last coefficient so far. pos, acc and n are the fields of the bitReader; entry is the
// current fastEntry, before the value of acc before the entry, and last the place of its second
// coefficient.
type huffman struct {
	block, b, ac, zigzag, k          GPVirtual
	pos, acc, n, before, entry, last GPVirtual
	any                              GPVirtual // whether the block that ends has more than a first coefficient
}

// huffmanUnits emits bitReader.units, except for what is rare, which it leaves to Go (the status
// says why it stops). What limits its speed is the chain from the bits of one entry to the bits of
// the next: a shift, a load, another shift. So the length of an entry is in its lowest six bits,
// the only ones that a shift looks at, and is never extracted. For the same reason whole entries
// are subtracted from n, of which only the lowest six bits are then right, until an AND cuts off
// the rest. The next cost is mispredicted branches, so there are few.
func huffmanUnits() {
	function("huffmanUnits", "func(state *[3]uint64, data *byte, end int, blocks *byte, size, from, units int, zigzag *byte, k0 int)"+
		" (status, left, at, k, last int, entry uint32, before uint64)",
		"huffmanUnits decodes units of the blocks at blocks, size bytes of them, beginning in the block that is from bytes on,\n"+
			"after its coefficient k0, or with a whole block if k0 is -1. state is pos, acc and n of a bitReader; 8 bytes at\n"+
			"data+end are the last of the file. If it stops early, it is in the block at bytes on, after k, and units are left,\n"+
			"this block's unit among them; if the status is odd, after the entry found in the bits before, whose coefficients\n"+
			"are k and last.")
	state := param("state")
	h := &huffman{
		block: param("blocks"), zigzag: param("zigzag"), k: param("k0"), b: GP64(), ac: GP64(),
		pos: GP64(), acc: GP64(), n: GP64(), before: GP64(), entry: GP64(), last: GP64(), any: GP64(),
	}
	MOVQ(at(state, 0), h.pos)
	MOVQ(at(state, 8), h.acc)
	MOVQ(at(state, 16), h.n)
	Store(param("units"), Return("left"))
	ADDQ(argument("from"), h.block)
	h.aim()
	TESTQ(h.k, h.k)
	JGE(LabelRef("group"))

	Label("block")
	h.difference()
	JMP(LabelRef("four"))
	Label("group")
	h.fill("groupBits", "slowly")
	h.coefficients()
	Label("four") // a difference takes 11 of the 56 bits at most: enough are left for four entries
	for range 4 {
		h.coefficients()
	}
	ANDQ(Imm(63), h.n)
	JMP(LabelRef("group"))

	h.ended()
	h.longDifference()
	h.longCoefficient()
	h.fillSlowly()
	h.leave()
}

// aim loads b and ac for the unitBlock at block.
func (h *huffman) aim() {
	MOVQ(at(h.block, placeAt), h.b)
	SHLQ(Imm(7), h.b)
	ADDQ(at(h.block, coefsAt), h.b)
	MOVQ(at(h.block, acAt), h.ac)
}

// difference decodes the first coefficient of a block, as bitReader.difference does.
func (h *huffman) difference() {
	h.fill("differenceBits", "slowly")
	table := GP64()
	MOVQ(at(h.block, dcAt), table)
	h.look(table, "longDifference")
	h.take()
	SARL(Imm(23), h.entry.As32())
	h.predict()
}

// predict adds entry, the difference, to the component's prediction, and sets k to 0.
func (h *huffman) predict() {
	pred := GP64()
	MOVQ(at(h.block, predAt), pred)
	ADDL(h.entry.As32(), at(pred, 0))
	XORQ(h.k, h.k)
}

// coefficients decodes one entry: one or two coefficients, or the end of the block.
func (h *huffman) coefficients() {
	h.look(h.ac, "longCoefficient")
	h.take()
	h.put()
}

// look loads the entry of the next bits from the table's fast part, and goes to missing if the fast
// part has no entry.
func (h *huffman) look(table GPVirtual, missing string) {
	MOVQ(h.acc, h.before)
	MOVQ(h.acc, h.entry)
	SHRQ(Imm(64-fastBits), h.entry)
	MOVL(Mem{Base: table, Index: h.entry, Scale: 4, Disp: fastAt}, h.entry.As32())
	TESTL(h.entry.As32(), h.entry.As32())
	JZ(LabelRef(missing))
}

// take removes the entry's bits from acc. Both instructions use the whole entry as a count: the
// shift looks at its lowest six bits only, and n is cut to these later.
func (h *huffman) take() {
	SHLXQ(h.entry, h.acc, h.acc)
	SUBQ(h.entry, h.n)
}

// put writes the two coefficients of the entry, the second coefficient first. If the entry has only
// one coefficient, last equals k, and the first coefficient is written over the second. It goes to
// ended at the end of the block.
func (h *huffman) put() {
	at, v := GP64(), GP32()
	h.step(at.As32(), 6)
	ADDQ(at, h.k)
	h.step(at.As32(), 12)
	MOVQ(h.k, h.last)
	ADDQ(at, h.last)
	MOVBQZX(index(h.zigzag, h.last, 1), at)
	MOVL(h.entry.As32(), v)
	SHLL(Imm(9), v)
	SARL(Imm(27), v)
	MOVW(v.As16(), index(h.b, at, 2))
	MOVBQZX(index(h.zigzag, h.k, 1), at)
	MOVL(h.entry.As32(), v)
	SARL(Imm(23), v)
	MOVW(v.As16(), index(h.b, at, 2))
	CMPQ(h.last, Imm(63))
	JGE(LabelRef("ended"))
	MOVQ(h.last, h.k)
}

// step extracts the six bits from bit number from on, a step of the entry.
func (h *huffman) step(to Register, from uint64) {
	MOVL(h.entry.As32(), to)
	SHRL(Imm(from), to)
	ANDL(Imm(63), to)
}

// ended finds out how an entry led to the end of the block or beyond (last is 63 or more), as
// bitReader.ended does, and continues with the next block. Nearly always the code for the end is in
// the entry. What bitReader.ended must decide goes to odd.
func (h *huffman) ended() {
	Label("ended")
	ANDQ(Imm(63), h.n)
	steps, second := GP32(), GP32()
	h.step(steps, 6)
	h.step(second, 12)
	ADDL(second, steps)
	CMPL(steps, Imm(fastEnd))
	JL(LabelRef("noEnd"))
	CMPQ(h.last, Imm(2*fastEnd)) // the end comes after a coefficient that is beyond the block
	JGE(LabelRef("odd"))
	CMPQ(h.last, Imm(fastEnd))
	SETNE(h.any.As8())

	Label("finished")
	t, flags := GP64(), GP64()
	MOVQ(at(h.block, predAt), t)
	MOVL(at(t, 0), t.As32())
	MOVW(t.As16(), at(h.b, 0))
	MOVQ(at(h.block, placeAt), t)
	MOVQ(at(h.block, anyAt), flags)
	MOVB(h.any.As8(), index(flags, t, 1))
	ADDQ(at(h.block, stepAt), t)
	MOVQ(t, at(h.block, placeAt))
	MOVQ(I32(-1), h.k)
	ADDQ(Imm(blockSize), h.block)
	MOVQ(argument("blocks"), t)
	ADDQ(argument("size"), t)
	CMPQ(h.block, t)
	JNE(LabelRef("next"))
	MOVQ(argument("blocks"), h.block)
	DECQ(result("left"))
	JZ(LabelRef("done"))
	Label("next")
	h.aim()
	JMP(LabelRef("block"))

	Label("noEnd")
	CMPQ(h.last, Imm(63))
	JNE(LabelRef("odd"))
	Label("full")
	MOVQ(U32(1), h.any)
	JMP(LabelRef("finished"))
}

// longDifference decodes a first coefficient whose code and value are too long for the fast table.
func (h *huffman) longDifference() {
	Label("longDifference")
	table, size := GP64(), h.before
	MOVQ(at(h.block, dcAt), table)
	h.symbol(table, size, "difference")
	CMPQ(size, Imm(15))
	JG(LabelRef("bad"))
	XORQ(h.entry, h.entry)
	TESTQ(size, size)
	JZ(LabelRef("noDifference"))
	h.value(size)
	Label("noDifference")
	h.predict()
	JMP(LabelRef("group"))
}

// longCoefficient decodes a coefficient whose code and value are too long for the fast table, as
// bitReader.long does.
func (h *huffman) longCoefficient() {
	Label("longCoefficient")
	ANDQ(Imm(63), h.n)
	h.fill("longBits", "longFF")
	symbol, size := h.before, h.last
	h.symbol(h.ac, symbol, "coefficient")
	MOVQ(symbol, size)
	ANDQ(Imm(15), size)
	JZ(LabelRef("noValue"))
	SHRQ(Imm(4), symbol)
	LEAQ(Mem{Base: h.k, Index: symbol, Scale: 1, Disp: 1}, h.k)
	h.value(size)
	CMPQ(h.k, Imm(63))
	JG(LabelRef("bad"))
	MOVBQZX(index(h.zigzag, h.k, 1), symbol)
	MOVW(h.entry.As16(), index(h.b, symbol, 2))
	JE(LabelRef("full"))
	JMP(LabelRef("group"))

	Label("noValue")
	CMPQ(symbol, U32(zeros))
	JNE(LabelRef("end"))
	ADDQ(Imm(16), h.k)
	CMPQ(h.k, Imm(63))
	JL(LabelRef("group"))
	JE(LabelRef("full"))
	JMP(LabelRef("bad"))
	Label("end")
	TESTQ(h.k, h.k)
	SETNE(h.any.As8())
	JMP(LabelRef("finished"))

	Label("longFF") // no eight bytes to refill with, but the bits may be enough: a code and a value take 31 at most
	CMPQ(h.n, Imm(32))
	JGE(LabelRef("longBits"))
	JMP(LabelRef("group"))
}

// symbol takes the next code off acc and sets to to its symbol, as huffTable.symbol does. It
// overwrites entry and last. label makes the labels of each use unique.
func (h *huffman) symbol(table, to GPVirtual, label string) {
	length, code := h.last, h.entry
	MOVQ(h.acc, to)
	SHRQ(Imm(64-lookBits), to)
	MOVWQZX(index(table, to, 2), to)
	MOVQ(to, length)
	SHRQ(Imm(8), to)
	ANDQ(Imm(31), length)
	JNZ(LabelRef(label + "Symbol"))

	MOVQ(U32(lookBits), length)
	t := GP64()
	Label(label + "Longer")
	INCQ(length)
	CMPQ(length, Imm(16))
	JG(LabelRef("bad"))
	MOVQ(length, t)
	NEGQ(t)
	SHRXQ(t, h.acc, code)
	SUBL(Mem{Base: table, Index: length, Scale: 4, Disp: firstAt}, code.As32())
	MOVBLZX(Mem{Base: table, Index: length, Scale: 1, Disp: countsAt - 1}, t.As32())
	CMPL(code.As32(), t.As32())
	JGE(LabelRef(label + "Longer"))
	ADDL(Mem{Base: table, Index: length, Scale: 4, Disp: indexAt}, code.As32())
	MOVBQZX(Mem{Base: table, Index: code, Scale: 1, Disp: symbolsAt}, to)

	Label(label + "Symbol")
	SHLXQ(length, h.acc, h.acc)
	SUBQ(length, h.n)
}

// value takes size bits off acc, at least one, and sets entry to the number that they stand for, as
// extend in package jpeg does: v, or v - (1<<size - 1) where the highest bit is 0, without a
// branch.
func (h *huffman) value(size GPVirtual) {
	v, least := h.entry, GP64()
	MOVQ(I32(-1), least)
	SHLXQ(size, least, least)
	INCQ(least)
	MOVQ(h.acc, v)
	SARQ(Imm(63), v)
	ANDNQ(least, v, least)
	MOVQ(size, v)
	NEGQ(v)
	SHRXQ(v, h.acc, v)
	ADDQ(least, v)
	SHLXQ(size, h.acc, h.acc)
	SUBQ(size, h.n)
}

// fill makes n at least 56, as bitReader.fill does, eight bytes at a time. It goes to other if
// one of the eight bytes is FF, or if fewer bytes are left.
func (h *huffman) fill(label, other string) {
	w, t := GP64(), GP64()
	CMPQ(h.pos, argument("end"))
	JG(LabelRef(other))
	MOVQ(argument("data"), w)
	MOVQ(index(w, h.pos, 1), w)
	BSWAPQ(w)
	MOVQ(w, t)
	NOTQ(t)
	ADDQ(quad("hasFF", 0xfefefefefefefeff), t)
	ANDQ(w, t)
	TESTQ(t, quad("highBits", 0x8080808080808080))
	JNZ(LabelRef(other))
	SHRXQ(h.n, w, w)
	ORQ(w, h.acc)
	MOVQ(U32(63), t)
	SUBQ(h.n, t)
	SHRQ(Imm(3), t)
	ADDQ(t, h.pos)
	ORQ(Imm(56), h.n)
	Label(label)
}

// fillSlowly emits the way on from label slowly: fill byte by byte, dropping the zero byte after an
// FF. At a marker, or within the last 8 bytes of the file, it goes to hungry.
func (h *huffman) fillSlowly() {
	w, data := GP64(), GP64()
	Label("slowly")
	CMPQ(h.n, Imm(56))
	JGE(LabelRef("filled"))
	CMPQ(h.pos, argument("end"))
	JG(LabelRef("hungry"))
	MOVQ(argument("data"), data)
	MOVBQZX(index(data, h.pos, 1), w)
	CMPQ(w, U32(0xFF))
	JNE(LabelRef("plain"))
	CMPB(Mem{Base: data, Index: h.pos, Scale: 1, Disp: 1}, Imm(0))
	JNE(LabelRef("hungry"))
	INCQ(h.pos)
	Label("plain")
	INCQ(h.pos)
	SHLQ(Imm(56), w)
	SHRXQ(h.n, w, w)
	ORQ(w, h.acc)
	ADDQ(Imm(8), h.n)
	JMP(LabelRef("slowly"))
	Label("filled")
	TESTQ(h.k, h.k)
	JGE(LabelRef("groupBits"))
	JMP(LabelRef("differenceBits"))
}

// leave emits the ends of the kernel: the labels that set the status, and the results.
func (h *huffman) leave() {
	status := GP64()
	for _, end := range []struct {
		label string
		code  uint32
	}{{"done", unitsDone}, {"hungry", unitsHungry}, {"bad", unitsBad}} {
		Label(end.label)
		MOVQ(U32(end.code), status)
		JMP(LabelRef("stop"))
	}
	Label("odd")
	MOVQ(U32(unitsOdd), status)
	Store(h.last, Return("last"))
	Store(h.entry.As32(), Return("entry"))
	Store(h.before, Return("before"))
	Label("stop")
	Store(status, Return("status"))
	Store(h.k, Return("k"))
	SUBQ(argument("blocks"), h.block)
	Store(h.block, Return("at"))
	state := param("state")
	MOVQ(h.pos, at(state, 0))
	MOVQ(h.acc, at(state, 8))
	MOVQ(h.n, at(state, 16))
	RET()
}

// argument returns the memory operand of a parameter on the stack. Parameters that are rarely
// used are not kept in a register.
func argument(name string) Mem { return address(Param(name)) }

// result returns the memory operand of a result.
func result(name string) Mem { return address(Return(name)) }
