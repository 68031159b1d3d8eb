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

// func crc32cRagged(sums *uint32, p *byte, ends *int, n int)
TEXT ·crc32cRagged(SB), NOSPLIT, $0-32
	MOVQ sums+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ ends+16(FP), BX
	MOVQ n+24(FP), CX
	XORQ R8, R8

row:
	MOVQ (BX), R9
	LEAQ (SI)(R8*1), R10
	MOVQ R9, R11
	SUBQ R8, R11
	MOVL (DI), AX
	NOTL AX
	JMP  next

eight:
	CRC32Q (R10), AX
	ADDQ   $8, R10
	SUBQ   $8, R11

next:
	CMPQ R11, $8
	JGE  eight
	TESTQ $4, R11
	JZ    two
	CRC32L (R10), AX
	ADDQ  $4, R10

two:
	TESTQ $2, R11
	JZ    one
	CRC32W (R10), AX
	ADDQ  $2, R10

one:
	TESTQ $1, R11
	JZ    done
	CRC32B (R10), AX

done:
	NOTL AX
	MOVL AX, (DI)
	ADDQ $4, DI
	ADDQ $8, BX
	MOVQ R9, R8
	DECQ CX
	JNZ  row
	RET
