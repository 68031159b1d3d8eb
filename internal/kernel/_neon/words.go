package main

import "fmt"

// word adds an instruction that Go's assembler does not have: its code but for the registers,
// and its text, in which %v stands for a register, in the order of Arm's manual.
func (k *kernel) word(code uint32, text string, regs ...vec) {
	names := make([]any, len(regs))
	for i, r := range regs {
		names[i] = r
		code |= uint32(r) << [...]int{0, 5, 16}[i]
	}
	k.op("WORD $%#08x // %s", code, fmt.Sprintf(text, names...))
}

// Of float32.

func (k *kernel) ucvtf(d, n vec)   { k.word(0x6e21d800, "UCVTF %v.4S, %v.4S", d, n) }
func (k *kernel) fmul(d, n, m vec) { k.word(0x6e20dc00, "FMUL %v.4S, %v.4S, %v.4S", d, n, m) }
func (k *kernel) fmla(d, n, m vec) { k.word(0x4e20cc00, "FMLA %v.4S, %v.4S, %v.4S", d, n, m) }
func (k *kernel) fsub(d, n, m vec) { k.word(0x4ea0d400, "FSUB %v.4S, %v.4S, %v.4S", d, n, m) }
func (k *kernel) fmin(d, n, m vec) { k.word(0x4ea0f400, "FMIN %v.4S, %v.4S, %v.4S", d, n, m) }
func (k *kernel) fmax(d, n, m vec) { k.word(0x4e20f400, "FMAX %v.4S, %v.4S, %v.4S", d, n, m) }

// Of float64.

func (k *kernel) ucvtf64(d, n vec)    { k.word(0x6e61d800, "UCVTF %v.2D, %v.2D", d, n) }
func (k *kernel) fadd64(d, n, m vec)  { k.word(0x4e60d400, "FADD %v.2D, %v.2D, %v.2D", d, n, m) }
func (k *kernel) fsub64(d, n, m vec)  { k.word(0x4ee0d400, "FSUB %v.2D, %v.2D, %v.2D", d, n, m) }
func (k *kernel) fmul64(d, n, m vec)  { k.word(0x6e60dc00, "FMUL %v.2D, %v.2D, %v.2D", d, n, m) }
func (k *kernel) fdiv64(d, n, m vec)  { k.word(0x6e60fc00, "FDIV %v.2D, %v.2D, %v.2D", d, n, m) }
func (k *kernel) fcmgt64(d, n, m vec) { k.word(0x6ee0e400, "FCMGT %v.2D, %v.2D, %v.2D", d, n, m) }

// From one width to the other: the first of a pair is of the lower half, the second of the
// upper.

func (k *kernel) halvesToSingles(d, n vec)   { k.word(0x0e217800, "FCVTL %v.4S, %v.4H", d, n) }
func (k *kernel) halvesToSingles2(d, n vec)  { k.word(0x4e217800, "FCVTL2 %v.4S, %v.8H", d, n) }
func (k *kernel) singlesToHalves(d, n vec)   { k.word(0x0e216800, "FCVTN %v.4H, %v.4S", d, n) }
func (k *kernel) singlesToHalves2(d, n vec)  { k.word(0x4e216800, "FCVTN2 %v.8H, %v.4S", d, n) }
func (k *kernel) singlesToDoubles(d, n vec)  { k.word(0x0e617800, "FCVTL %v.2D, %v.2S", d, n) }
func (k *kernel) singlesToDoubles2(d, n vec) { k.word(0x4e617800, "FCVTL2 %v.2D, %v.4S", d, n) }
func (k *kernel) doublesToSingles(d, n vec)  { k.word(0x0e616800, "FCVTN %v.2S, %v.2D", d, n) }
func (k *kernel) doublesToSingles2(d, n vec) { k.word(0x4e616800, "FCVTN2 %v.4S, %v.2D", d, n) }

// Of integers.

func (k *kernel) mla(d, n, m vec) { k.word(0x4ea09400, "MLA %v.4S, %v.4S, %v.4S", d, n, m) }

// mlaLane is mla by one number of m.
func (k *kernel) mlaLane(d, n, m vec, lane int) {
	code := 0x6f800000 | uint32(lane&1)<<21 | uint32(lane>>1)<<11
	k.word(code, fmt.Sprintf("MLA %%v.4S, %%v.4S, %%v.S[%d]", lane), d, n, m)
}

// The products of the first four of n, or with a 2 of the last four, and one number of m.

func (k *kernel) umull(d, n, m vec, lane int)  { k.long(0x2f40a000, "UMULL", "4H", d, n, m, lane) }
func (k *kernel) umull2(d, n, m vec, lane int) { k.long(0x6f40a000, "UMULL2", "8H", d, n, m, lane) }
func (k *kernel) umlal(d, n, m vec, lane int)  { k.long(0x2f402000, "UMLAL", "4H", d, n, m, lane) }
func (k *kernel) umlal2(d, n, m vec, lane int) { k.long(0x6f402000, "UMLAL2", "8H", d, n, m, lane) }
func (k *kernel) smull(d, n, m vec, lane int)  { k.long(0x0f40a000, "SMULL", "4H", d, n, m, lane) }
func (k *kernel) smull2(d, n, m vec, lane int) { k.long(0x4f40a000, "SMULL2", "8H", d, n, m, lane) }
func (k *kernel) smlal(d, n, m vec, lane int)  { k.long(0x0f402000, "SMLAL", "4H", d, n, m, lane) }
func (k *kernel) smlal2(d, n, m vec, lane int) { k.long(0x4f402000, "SMLAL2", "8H", d, n, m, lane) }

func (k *kernel) long(code uint32, name, from string, d, n, m vec, lane int) {
	if m > 15 {
		panic(k.name + ": " + name + " by a register that it cannot reach")
	}
	code |= uint32(lane&3)<<20 | uint32(lane>>2)<<11
	k.word(code, fmt.Sprintf("%s %%v.4S, %%v.%s, %%v.H[%d]", name, from, lane), d, n, m)
}

func (k *kernel) umullBytes(d, n, m vec) { k.word(0x2e20c000, "UMULL %v.8H, %v.8B, %v.8B", d, n, m) }
func (k *kernel) umullBytes2(d, n, m vec) {
	k.word(0x6e20c000, "UMULL2 %v.8H, %v.16B, %v.16B", d, n, m)
}
func (k *kernel) uaddlpBytes(d, n vec) { k.word(0x6e202800, "UADDLP %v.8H, %v.16B", d, n) }
func (k *kernel) uaddlpWords(d, n vec) { k.word(0x6ea02800, "UADDLP %v.2D, %v.4S", d, n) }
func (k *kernel) uadalp(d, n vec)      { k.word(0x6e606800, "UADALP %v.4S, %v.8H", d, n) }

func (k *kernel) umlalBytes(d, n, m vec) { k.word(0x2e208000, "UMLAL %v.8H, %v.8B, %v.8B", d, n, m) }
func (k *kernel) umlalBytes2(d, n, m vec) {
	k.word(0x6e208000, "UMLAL2 %v.8H, %v.16B, %v.16B", d, n, m)
}
func (k *kernel) usubl(d, n, m vec)    { k.word(0x2e202000, "USUBL %v.8H, %v.8B, %v.8B", d, n, m) }
func (k *kernel) usubl2(d, n, m vec)   { k.word(0x6e202000, "USUBL2 %v.8H, %v.16B, %v.16B", d, n, m) }
func (k *kernel) uaddw(d, n, m vec)    { k.word(0x2e201000, "UADDW %v.8H, %v.8H, %v.8B", d, n, m) }
func (k *kernel) uaddw2(d, n, m vec)   { k.word(0x6e201000, "UADDW2 %v.8H, %v.8H, %v.16B", d, n, m) }
func (k *kernel) mulWords(d, n, m vec) { k.word(0x4e609c00, "MUL %v.8H, %v.8H, %v.8H", d, n, m) }
func (k *kernel) sshll13(d, n vec)     { k.word(0x0f1da400, "SSHLL %v.4S, %v.4H, #13", d, n) }
func (k *kernel) sshll13by2(d, n vec)  { k.word(0x4f1da400, "SSHLL2 %v.4S, %v.8H, #13", d, n) }

// addhn adds and keeps the upper 16 bits, subhn subtracts, rshrn rounds them, xtn drops the upper 8.
func (k *kernel) addhn(d, n, m vec)  { k.word(0x0e604000, "ADDHN %v.4H, %v.4S, %v.4S", d, n, m) }
func (k *kernel) addhn2(d, n, m vec) { k.word(0x4e604000, "ADDHN2 %v.8H, %v.4S, %v.4S", d, n, m) }
func (k *kernel) subhn(d, n, m vec)  { k.word(0x0e606000, "SUBHN %v.4H, %v.4S, %v.4S", d, n, m) }
func (k *kernel) subhn2(d, n, m vec) { k.word(0x4e606000, "SUBHN2 %v.8H, %v.4S, %v.4S", d, n, m) }
func (k *kernel) rshrn(d, n vec)     { k.word(0x0f108c00, "RSHRN %v.4H, %v.4S, #16", d, n) }
func (k *kernel) rshrn2(d, n vec)    { k.word(0x4f108c00, "RSHRN2 %v.8H, %v.4S, #16", d, n) }
func (k *kernel) xtn(d, n vec)       { k.word(0x0e212800, "XTN %v.8B, %v.8H", d, n) }
func (k *kernel) xtn2(d, n vec)      { k.word(0x4e212800, "XTN2 %v.16B, %v.8H", d, n) }

// sqshrun shifts right by 6 and limits to a byte.
func (k *kernel) sqshrun(d, n vec)  { k.word(0x2f0a8400, "SQSHRUN %v.8B, %v.8H, #6", d, n) }
func (k *kernel) sqshrun2(d, n vec) { k.word(0x6f0a8400, "SQSHRUN2 %v.16B, %v.8H, #6", d, n) }

// Shifts to half the width: shrn4 by 4, sqxtun by none and limited to a byte, sqshrn limited
// to a signed number.

func (k *kernel) shrn4(d, n vec)    { k.word(0x0f0c8400, "SHRN %v.8B, %v.8H, #4", d, n) }
func (k *kernel) shrn4by2(d, n vec) { k.word(0x4f0c8400, "SHRN2 %v.16B, %v.8H, #4", d, n) }
func (k *kernel) sqxtun(d, n vec)   { k.word(0x2e212800, "SQXTUN %v.8B, %v.8H", d, n) }
func (k *kernel) sqxtun2(d, n vec)  { k.word(0x6e212800, "SQXTUN2 %v.16B, %v.8H", d, n) }

func (k *kernel) sqshrn11(d, n vec)    { k.word(0x0f159400, "SQSHRN %v.4H, %v.4S, #11", d, n) }
func (k *kernel) sqshrn11by2(d, n vec) { k.word(0x4f159400, "SQSHRN2 %v.8H, %v.4S, #11", d, n) }
func (k *kernel) sqshrn2(d, n vec)     { k.word(0x0f0e9400, "SQSHRN %v.8B, %v.8H, #2", d, n) }
