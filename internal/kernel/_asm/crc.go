package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// crc32c emits the checksum of 512 bytes at a time, as remainders of 128 bits: a remainder that
// stands n bytes before other bytes is added to them after its halves are multiplied by x^(8n+31)
// and x^(8n-33), modulo the polynomial (Gopal et al., Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ).
func crc32c() {
	function("crc32c512", "func(crc uint32, src *byte, n int) uint32",
		"crc32c512 is CRC32C, not inverted before and after, of n bytes, a positive multiple of 512.")
	crc, src, n := Load(Param("crc"), GP32()), param("src"), param("n")
	var sums [8]VecVirtual
	for i := range sums {
		sums[i] = ZMM()
		VMOVDQU64(at(src, 64*i), sums[i])
	}
	first := ZMM()
	VMOVD(crc, first.AsX())
	VPXORQ(first, sums[0], sums[0])
	by := ZMM()
	VBROADCASTI32X4(crcConstants("crcBy512", 512), by)
	JMP(LabelRef("next"))
	Label("loop")
	for i, sum := range sums {
		moveCRC(sum, by, at(src, 64*i))
	}
	Label("next")
	ADDQ(U32(512), src)
	SUBQ(U32(512), n)
	JG(LabelRef("loop"))
	for half := len(sums) / 2; half > 0; half /= 2 {
		VBROADCASTI32X4(crcConstants(map[int]string{4: "crcBy256", 2: "crcBy128", 1: "crcBy64"}[half], 64*half), by)
		for i := range half {
			moveCRC(sums[i], by, sums[i+half])
		}
	}
	Store(crcOfLanes(sums[0]), ReturnIndex(0))
	finish()
}

// moveCRC moves the remainder sum forward to the place of the bytes that follow, and adds these
// bytes.
func moveCRC(sum, by VecVirtual, bytes Op) {
	high := ZMM()
	VPCLMULQDQ(Imm(0x11), by, sum, high)
	VPCLMULQDQ(Imm(0x00), by, sum, sum)
	VPTERNLOGQ(Imm(0x96), bytes, high, sum) // the sum of all three
}

// crcOfLanes returns the checksum of 64 bytes.
func crcOfLanes(sum VecVirtual) Register {
	high, by, lane, rest := ZMM(), ZMM(), XMM(), YMM()
	VMOVDQU64(crcConstants("crcToLast", 48, 32, 16), by)
	VEXTRACTI32X4(Imm(3), sum, lane)
	VPCLMULQDQ(Imm(0x11), by, sum, high)
	VPCLMULQDQ(Imm(0x00), by, sum, sum)
	VPXORQ(high, sum, sum) // its last lane is 0, as the constants are
	VEXTRACTI64X4(Imm(1), sum, rest)
	VPXOR(rest, sum.AsY(), rest)
	VPXOR(rest.AsX(), lane, lane)
	VEXTRACTI128(Imm(1), rest, rest.AsX())
	VPXOR(rest.AsX(), lane, lane)
	crc, word := GP64(), GP64()
	XORQ(crc, crc)
	VMOVQ(lane, word)
	CRC32Q(word, crc)
	VPEXTRQ(Imm(1), lane, word)
	CRC32Q(word, crc)
	return crc.As32()
}

// crcConstants returns the constants that move lanes by the given numbers of bytes; 64 bytes,
// filled with zeros, if there are several lanes.
func crcConstants(name string, moves ...int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, n := range moves {
		DATA(16*i, U64(powerOfX(8*n+31)))
		DATA(16*i+8, U64(powerOfX(8*n-33)))
	}
	if len(moves) > 1 {
		for at := 16 * len(moves); at < 64; at += 8 {
			DATA(at, U64(0))
		}
	}
	return m
}

// powerOfX returns x^n modulo the polynomial of CRC32C, the lowest power in the highest bit.
func powerOfX(n int) uint64 {
	const castagnoli = 0x82f63b78
	p := uint64(1 << 31)
	for range n {
		p = p>>1 ^ castagnoli*(p&1)
	}
	return p
}
