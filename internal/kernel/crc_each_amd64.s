//go:build !purego

#include "textflag.h"

// func crc32cEach4(sums *uint32, p *byte, n int)
TEXT ·crc32cEach4(SB), NOSPLIT, $0-24
	MOVQ sums+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	XORQ DX, DX

words:
	MOVL   (DI)(DX*4), AX
	NOTL   AX
	CRC32L (SI)(DX*4), AX
	NOTL   AX
	MOVL   AX, (DI)(DX*4)
	INCQ   DX
	CMPQ   DX, CX
	JLT    words
	RET

// func crc32cEach8(sums *uint32, p *byte, n int)
TEXT ·crc32cEach8(SB), NOSPLIT, $0-24
	MOVQ sums+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	XORQ DX, DX

words:
	MOVL   (DI)(DX*4), AX
	NOTL   AX
	CRC32Q (SI)(DX*8), AX
	NOTL   AX
	MOVL   AX, (DI)(DX*4)
	INCQ   DX
	CMPQ   DX, CX
	JLT    words
	RET
