//go:build !purego

#include "textflag.h"

// func mark64(dst *uint64, p *byte, n int, c uint64)
TEXT ·mark64(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ c+24(FP), AX
	MOVQ AX, X0
	VPBROADCASTB X0, Y0

words:
	VPCMPEQB (SI), Y0, Y1
	VPCMPEQB 32(SI), Y0, Y2
	VPMOVMSKB Y1, AX
	VPMOVMSKB Y2, BX
	SHLQ $32, BX
	ORQ  BX, AX
	MOVQ AX, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  words
	VZEROUPPER
	RET
