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

// umull and umlal multiply the first four of n by one number of m, the others with a 2 the
// last four.
func (k *kernel) umull(d, n, m vec, lane int)  { k.long(0x2f40a000, "UMULL", "4H", d, n, m, lane) }
func (k *kernel) umull2(d, n, m vec, lane int) { k.long(0x6f40a000, "UMULL2", "8H", d, n, m, lane) }
func (k *kernel) umlal(d, n, m vec, lane int)  { k.long(0x2f402000, "UMLAL", "4H", d, n, m, lane) }
func (k *kernel) umlal2(d, n, m vec, lane int) { k.long(0x6f402000, "UMLAL2", "8H", d, n, m, lane) }

func (k *kernel) long(code uint32, name, from string, d, n, m vec, lane int) {
	if m > 15 || lane > 3 {
		panic(k.name + ": " + name + " by a number that it cannot reach")
	}
	k.word(code|uint32(lane)<<20, fmt.Sprintf("%s %%v.4S, %%v.%s, %%v.H[%d]", name, from, lane), d, n, m)
}

func (k *kernel) umullBytes(d, n, m vec) { k.word(0x2e20c000, "UMULL %v.8H, %v.8B, %v.8B", d, n, m) }
func (k *kernel) umullBytes2(d, n, m vec) {
	k.word(0x6e20c000, "UMULL2 %v.8H, %v.16B, %v.16B", d, n, m)
}
func (k *kernel) uaddlpBytes(d, n vec) { k.word(0x6e202800, "UADDLP %v.8H, %v.16B", d, n) }
func (k *kernel) uaddlpWords(d, n vec) { k.word(0x6ea02800, "UADDLP %v.2D, %v.4S", d, n) }
func (k *kernel) uadalp(d, n vec)      { k.word(0x6e606800, "UADALP %v.4S, %v.8H", d, n) }

// addhn adds and keeps the upper 16 bits, rshrn rounds them, xtn drops the upper 8.
func (k *kernel) addhn(d, n, m vec)  { k.word(0x0e604000, "ADDHN %v.4H, %v.4S, %v.4S", d, n, m) }
func (k *kernel) addhn2(d, n, m vec) { k.word(0x4e604000, "ADDHN2 %v.8H, %v.4S, %v.4S", d, n, m) }
func (k *kernel) rshrn(d, n vec)     { k.word(0x0f108c00, "RSHRN %v.4H, %v.4S, #16", d, n) }
func (k *kernel) rshrn2(d, n vec)    { k.word(0x4f108c00, "RSHRN2 %v.8H, %v.4S, #16", d, n) }
func (k *kernel) xtn(d, n vec)       { k.word(0x0e212800, "XTN %v.8B, %v.8H", d, n) }
func (k *kernel) xtn2(d, n vec)      { k.word(0x4e212800, "XTN2 %v.16B, %v.8H", d, n) }

// sqshrun shifts right by 6 and limits to a byte.
func (k *kernel) sqshrun(d, n vec)  { k.word(0x2f0a8400, "SQSHRUN %v.8B, %v.8H, #6", d, n) }
func (k *kernel) sqshrun2(d, n vec) { k.word(0x6f0a8400, "SQSHRUN2 %v.16B, %v.8H, #6", d, n) }
