//go:build !purego && !race

#include "textflag.h"

DATA iota<>+0(SB)/8, $0
DATA iota<>+8(SB)/8, $1
DATA iota<>+16(SB)/8, $2
DATA iota<>+24(SB)/8, $3
DATA iota<>+32(SB)/8, $4
DATA iota<>+40(SB)/8, $5
DATA iota<>+48(SB)/8, $6
DATA iota<>+56(SB)/8, $7
GLOBL iota<>(SB), RODATA|NOPTR, $64

// ROUND is X = (X + high(mix(Y+key)*M)) % M in two registers of 8 positions each, with a factor M
// of less than 2^32: high(z*M) is (z>>32*M + z%2^32*M>>32) >> 32. Z16 and Z17 are the factors of mix.
#define ROUND(X0, X1, Y0, Y1, KEY, M) \
	VPADDQ.BCST KEY, Y0, Z20 \
	VPADDQ.BCST KEY, Y1, Z22 \
	VPSRLQ $30, Z20, Z21 \
	VPSRLQ $30, Z22, Z23 \
	VPXORQ Z21, Z20, Z20 \
	VPXORQ Z23, Z22, Z22 \
	VPMULLQ Z16, Z20, Z20 \
	VPMULLQ Z16, Z22, Z22 \
	VPSRLQ $27, Z20, Z21 \
	VPSRLQ $27, Z22, Z23 \
	VPXORQ Z21, Z20, Z20 \
	VPXORQ Z23, Z22, Z22 \
	VPMULLQ Z17, Z20, Z20 \
	VPMULLQ Z17, Z22, Z22 \
	VPSRLQ $31, Z20, Z21 \
	VPSRLQ $31, Z22, Z23 \
	VPXORQ Z21, Z20, Z20 \
	VPXORQ Z23, Z22, Z22 \
	VPMULUDQ M, Z20, Z21 \
	VPMULUDQ M, Z22, Z23 \
	VPSRLQ $32, Z20, Z20 \
	VPSRLQ $32, Z22, Z22 \
	VPMULUDQ M, Z20, Z20 \
	VPMULUDQ M, Z22, Z22 \
	VPSRLQ $32, Z21, Z21 \
	VPSRLQ $32, Z23, Z23 \
	VPADDQ Z21, Z20, Z20 \
	VPADDQ Z23, Z22, Z22 \
	VPSRLQ $32, Z20, Z20 \
	VPSRLQ $32, Z22, Z22 \
	VPADDQ Z20, X0, X0 \
	VPADDQ Z22, X1, X1 \
	VPSUBQ M, X0, Z20 \
	VPSUBQ M, X1, Z22 \
	VPMINUQ Z20, X0, X0 \
	VPMINUQ Z22, X1, X1

// CONSTANTS takes a from R8 and b from BX.
#define CONSTANTS \
	VPBROADCASTQ R8, Z18 \
	VPBROADCASTQ BX, Z19 \
	MOVQ $0xbf58476d1ce4e5b9, R9 \
	VPBROADCASTQ R9, Z16 \
	MOVQ $0x94d049bb133111eb, R9 \
	VPBROADCASTQ R9, Z17

// IMAGES is hi*b + lo after all rounds in Z0 and Z1, of hi in these and lo in Z2 and Z3.
#define IMAGES \
	ROUND(Z0, Z1, Z2, Z3, 0(SI), Z18) \
	ROUND(Z2, Z3, Z0, Z1, 8(SI), Z19) \
	ROUND(Z0, Z1, Z2, Z3, 16(SI), Z18) \
	ROUND(Z2, Z3, Z0, Z1, 24(SI), Z19) \
	ROUND(Z0, Z1, Z2, Z3, 32(SI), Z18) \
	ROUND(Z2, Z3, Z0, Z1, 40(SI), Z19) \
	ROUND(Z0, Z1, Z2, Z3, 48(SI), Z18) \
	ROUND(Z2, Z3, Z0, Z1, 56(SI), Z19) \
	VPMULUDQ Z19, Z0, Z0 \
	VPMULUDQ Z19, Z1, Z1 \
	VPADDQ Z2, Z0, Z0 \
	VPADDQ Z3, Z1, Z1

// DIVIDE is Q, R = X / b, X % b of X below 2^52, with b in Z19 and as float64 in Z27: the quotient of
// float64 is too large or too small by one at most.
#define DIVIDE(X, Q, R) \
	VCVTUQQ2PD X, Z20 \
	VDIVPD Z27, Z20, Z20 \
	VCVTTPD2UQQ Z20, Q \
	VPMULLQ Z19, Q, Z20 \
	VPSUBQ Z20, X, R \
	VPMOVQ2M R, K1 \
	VPSUBQ Z26, Q, K1, Q \
	VPADDQ Z19, R, K1, R \
	VPCMPUQ $5, Z19, R, K2 \
	VPADDQ Z26, Q, K2, Q \
	VPSUBQ Z19, R, K2, R

// func feistel512(dst *int, n int, hi, lo, a, b uint64, keys *[8]uint64)
// hi is in Z0 and Z1, lo in Z2 and Z3.
TEXT ·feistel512(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ hi+16(FP), DX
	MOVQ lo+24(FP), AX
	MOVQ a+32(FP), R8
	MOVQ b+40(FP), BX
	MOVQ keys+48(FP), SI
	CONSTANTS
	VMOVDQU64 iota<>(SB), Z24
	MOVQ $8, R9
	VPBROADCASTQ R9, Z25
	VPADDQ Z24, Z25, Z25
	MOVQ $1, R9
	VPBROADCASTQ R9, Z26

positions:
	VPBROADCASTQ DX, Z0
	VMOVDQA64 Z0, Z1
	VPBROADCASTQ AX, Z2
	VPADDQ Z25, Z2, Z3
	VPADDQ Z24, Z2, Z2
	VPCMPUQ $5, Z19, Z2, K1 // those with lo >= b are in the next row
	VPCMPUQ $5, Z19, Z3, K2
	VPADDQ Z26, Z0, K1, Z0
	VPADDQ Z26, Z1, K2, Z1
	VPSUBQ Z19, Z2, K1, Z2
	VPSUBQ Z19, Z3, K2, Z3
	IMAGES
	VMOVDQU64 Z0, (DI)
	VMOVDQU64 Z1, 64(DI)
	ADDQ $128, DI
	ADDQ $16, AX
	CMPQ AX, BX
	JLT  next
	SUBQ BX, AX
	INCQ DX

next:
	SUBQ $16, CX
	JNZ  positions
	VZEROUPPER
	RET

// func feistelAt512(x *int, n int, a, b uint64, keys *[8]uint64)
TEXT ·feistelAt512(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ a+16(FP), R8
	MOVQ b+24(FP), BX
	MOVQ keys+32(FP), SI
	CONSTANTS
	VCVTUQQ2PD Z19, Z27
	MOVQ $1, R9
	VPBROADCASTQ R9, Z26

positions:
	VMOVDQU64 (DI), Z28
	VMOVDQU64 64(DI), Z29
	DIVIDE(Z28, Z0, Z2)
	DIVIDE(Z29, Z1, Z3)
	IMAGES
	VMOVDQU64 Z0, (DI)
	VMOVDQU64 Z1, 64(DI)
	ADDQ $128, DI
	SUBQ $16, CX
	JNZ  positions
	VZEROUPPER
	RET
