//go:build !purego && !race

#include "textflag.h"

// func moveUp(dst, src *byte, n int)
TEXT ·moveUp(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	REP; MOVSB
	RET
