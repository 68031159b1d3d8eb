//go:build !purego

#include "textflag.h"

// The rounds of SHA-256 (FIPS 180-4, 6.2.2) for 16 hashes side by side: Z0 to Z15 are the last words of the schedule, Z16
// to Z23 the registers a to h.

// SIGMA makes x the sum of y, turned right by i, j and k, without carries.
#define SIGMA(i, j, k, y, x) \
	VPRORD $i, y, x; \
	VPRORD $j, y, Z26; \
	VPRORD $k, y, Z27; \
	VPTERNLOGD $0x96, Z27, Z26, x

// SHIFTED is SIGMA, and the last turn is a shift.
#define SHIFTED(i, j, k, y, x) \
	VPRORD $i, y, x; \
	VPRORD $j, y, Z26; \
	VPSRLD $k, y, Z27; \
	VPTERNLOGD $0x96, Z27, Z26, x

// LOAD loads word t of the schedule, big endian.
#define LOAD(t, w) \
	KXNORW K1, K1, K1; \
	VPGATHERDD (4*t)(SI)(Z30*1), K1, w; \
	VPSHUFB Z29, w, w

// EXTEND makes w0 the word that comes 16 after it.
#define EXTEND(w0, w1, w9, w14) \
	SHIFTED(7, 18, 3, w1, Z24); \
	SHIFTED(17, 19, 10, w14, Z25); \
	VPADDD Z24, w0, w0; \
	VPADDD w9, w0, w0; \
	VPADDD Z25, w0, w0

// ROUND does round t of 16, with the word w. The names of the registers move on by one after it.
#define ROUND(a, b, c, d, e, f, g, h, w, t) \
	SIGMA(6, 11, 25, e, Z24); \
	VMOVDQA32 e, Z25; \
	VPTERNLOGD $0xca, g, f, Z25; \
	VPADDD Z24, h, h; \
	VPADDD.BCST (4*t)(R8), w, Z24; \
	VPADDD Z25, h, h; \
	VPADDD Z24, h, h; \
	VPADDD h, d, d; \
	SIGMA(2, 13, 22, a, Z24); \
	VMOVDQA32 a, Z25; \
	VPTERNLOGD $0xe8, c, b, Z25; \
	VPADDD Z24, h, h; \
	VPADDD Z25, h, h

// func sha256x16(state *[8][16]uint32, p *byte, offsets *[16]uint32, blocks int)
TEXT ·sha256x16(SB), NOSPLIT, $0-32
	MOVQ state+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ offsets+16(FP), AX
	MOVQ blocks+24(FP), CX
	VMOVDQU32 (AX), Z30
	VMOVDQU32 sha256Swap<>(SB), Z29
	VMOVDQU32 0(DI), Z16
	VMOVDQU32 64(DI), Z17
	VMOVDQU32 128(DI), Z18
	VMOVDQU32 192(DI), Z19
	VMOVDQU32 256(DI), Z20
	VMOVDQU32 320(DI), Z21
	VMOVDQU32 384(DI), Z22
	VMOVDQU32 448(DI), Z23

block:
	LEAQ sha256Constants<>(SB), R8
	LOAD(0, Z0)
	LOAD(1, Z1)
	LOAD(2, Z2)
	LOAD(3, Z3)
	LOAD(4, Z4)
	LOAD(5, Z5)
	LOAD(6, Z6)
	LOAD(7, Z7)
	LOAD(8, Z8)
	LOAD(9, Z9)
	LOAD(10, Z10)
	LOAD(11, Z11)
	LOAD(12, Z12)
	LOAD(13, Z13)
	LOAD(14, Z14)
	LOAD(15, Z15)
	ROUND(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z0, 0)
	ROUND(Z23, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z1, 1)
	ROUND(Z22, Z23, Z16, Z17, Z18, Z19, Z20, Z21, Z2, 2)
	ROUND(Z21, Z22, Z23, Z16, Z17, Z18, Z19, Z20, Z3, 3)
	ROUND(Z20, Z21, Z22, Z23, Z16, Z17, Z18, Z19, Z4, 4)
	ROUND(Z19, Z20, Z21, Z22, Z23, Z16, Z17, Z18, Z5, 5)
	ROUND(Z18, Z19, Z20, Z21, Z22, Z23, Z16, Z17, Z6, 6)
	ROUND(Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z16, Z7, 7)
	ROUND(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z8, 8)
	ROUND(Z23, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z9, 9)
	ROUND(Z22, Z23, Z16, Z17, Z18, Z19, Z20, Z21, Z10, 10)
	ROUND(Z21, Z22, Z23, Z16, Z17, Z18, Z19, Z20, Z11, 11)
	ROUND(Z20, Z21, Z22, Z23, Z16, Z17, Z18, Z19, Z12, 12)
	ROUND(Z19, Z20, Z21, Z22, Z23, Z16, Z17, Z18, Z13, 13)
	ROUND(Z18, Z19, Z20, Z21, Z22, Z23, Z16, Z17, Z14, 14)
	ROUND(Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z16, Z15, 15)
	MOVQ $3, DX

rounds:
	ADDQ $64, R8
	EXTEND(Z0, Z1, Z9, Z14)
	ROUND(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z0, 0)
	EXTEND(Z1, Z2, Z10, Z15)
	ROUND(Z23, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z1, 1)
	EXTEND(Z2, Z3, Z11, Z0)
	ROUND(Z22, Z23, Z16, Z17, Z18, Z19, Z20, Z21, Z2, 2)
	EXTEND(Z3, Z4, Z12, Z1)
	ROUND(Z21, Z22, Z23, Z16, Z17, Z18, Z19, Z20, Z3, 3)
	EXTEND(Z4, Z5, Z13, Z2)
	ROUND(Z20, Z21, Z22, Z23, Z16, Z17, Z18, Z19, Z4, 4)
	EXTEND(Z5, Z6, Z14, Z3)
	ROUND(Z19, Z20, Z21, Z22, Z23, Z16, Z17, Z18, Z5, 5)
	EXTEND(Z6, Z7, Z15, Z4)
	ROUND(Z18, Z19, Z20, Z21, Z22, Z23, Z16, Z17, Z6, 6)
	EXTEND(Z7, Z8, Z0, Z5)
	ROUND(Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z16, Z7, 7)
	EXTEND(Z8, Z9, Z1, Z6)
	ROUND(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z8, 8)
	EXTEND(Z9, Z10, Z2, Z7)
	ROUND(Z23, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z9, 9)
	EXTEND(Z10, Z11, Z3, Z8)
	ROUND(Z22, Z23, Z16, Z17, Z18, Z19, Z20, Z21, Z10, 10)
	EXTEND(Z11, Z12, Z4, Z9)
	ROUND(Z21, Z22, Z23, Z16, Z17, Z18, Z19, Z20, Z11, 11)
	EXTEND(Z12, Z13, Z5, Z10)
	ROUND(Z20, Z21, Z22, Z23, Z16, Z17, Z18, Z19, Z12, 12)
	EXTEND(Z13, Z14, Z6, Z11)
	ROUND(Z19, Z20, Z21, Z22, Z23, Z16, Z17, Z18, Z13, 13)
	EXTEND(Z14, Z15, Z7, Z12)
	ROUND(Z18, Z19, Z20, Z21, Z22, Z23, Z16, Z17, Z14, 14)
	EXTEND(Z15, Z0, Z8, Z13)
	ROUND(Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z16, Z15, 15)
	DECQ DX
	JNZ  rounds
	VPADDD 0(DI), Z16, Z16
	VMOVDQU32 Z16, 0(DI)
	VPADDD 64(DI), Z17, Z17
	VMOVDQU32 Z17, 64(DI)
	VPADDD 128(DI), Z18, Z18
	VMOVDQU32 Z18, 128(DI)
	VPADDD 192(DI), Z19, Z19
	VMOVDQU32 Z19, 192(DI)
	VPADDD 256(DI), Z20, Z20
	VMOVDQU32 Z20, 256(DI)
	VPADDD 320(DI), Z21, Z21
	VMOVDQU32 Z21, 320(DI)
	VPADDD 384(DI), Z22, Z22
	VMOVDQU32 Z22, 384(DI)
	VPADDD 448(DI), Z23, Z23
	VMOVDQU32 Z23, 448(DI)
	ADDQ $64, SI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

DATA sha256Constants<>+0(SB)/4, $0x428a2f98
DATA sha256Constants<>+4(SB)/4, $0x71374491
DATA sha256Constants<>+8(SB)/4, $0xb5c0fbcf
DATA sha256Constants<>+12(SB)/4, $0xe9b5dba5
DATA sha256Constants<>+16(SB)/4, $0x3956c25b
DATA sha256Constants<>+20(SB)/4, $0x59f111f1
DATA sha256Constants<>+24(SB)/4, $0x923f82a4
DATA sha256Constants<>+28(SB)/4, $0xab1c5ed5
DATA sha256Constants<>+32(SB)/4, $0xd807aa98
DATA sha256Constants<>+36(SB)/4, $0x12835b01
DATA sha256Constants<>+40(SB)/4, $0x243185be
DATA sha256Constants<>+44(SB)/4, $0x550c7dc3
DATA sha256Constants<>+48(SB)/4, $0x72be5d74
DATA sha256Constants<>+52(SB)/4, $0x80deb1fe
DATA sha256Constants<>+56(SB)/4, $0x9bdc06a7
DATA sha256Constants<>+60(SB)/4, $0xc19bf174
DATA sha256Constants<>+64(SB)/4, $0xe49b69c1
DATA sha256Constants<>+68(SB)/4, $0xefbe4786
DATA sha256Constants<>+72(SB)/4, $0x0fc19dc6
DATA sha256Constants<>+76(SB)/4, $0x240ca1cc
DATA sha256Constants<>+80(SB)/4, $0x2de92c6f
DATA sha256Constants<>+84(SB)/4, $0x4a7484aa
DATA sha256Constants<>+88(SB)/4, $0x5cb0a9dc
DATA sha256Constants<>+92(SB)/4, $0x76f988da
DATA sha256Constants<>+96(SB)/4, $0x983e5152
DATA sha256Constants<>+100(SB)/4, $0xa831c66d
DATA sha256Constants<>+104(SB)/4, $0xb00327c8
DATA sha256Constants<>+108(SB)/4, $0xbf597fc7
DATA sha256Constants<>+112(SB)/4, $0xc6e00bf3
DATA sha256Constants<>+116(SB)/4, $0xd5a79147
DATA sha256Constants<>+120(SB)/4, $0x06ca6351
DATA sha256Constants<>+124(SB)/4, $0x14292967
DATA sha256Constants<>+128(SB)/4, $0x27b70a85
DATA sha256Constants<>+132(SB)/4, $0x2e1b2138
DATA sha256Constants<>+136(SB)/4, $0x4d2c6dfc
DATA sha256Constants<>+140(SB)/4, $0x53380d13
DATA sha256Constants<>+144(SB)/4, $0x650a7354
DATA sha256Constants<>+148(SB)/4, $0x766a0abb
DATA sha256Constants<>+152(SB)/4, $0x81c2c92e
DATA sha256Constants<>+156(SB)/4, $0x92722c85
DATA sha256Constants<>+160(SB)/4, $0xa2bfe8a1
DATA sha256Constants<>+164(SB)/4, $0xa81a664b
DATA sha256Constants<>+168(SB)/4, $0xc24b8b70
DATA sha256Constants<>+172(SB)/4, $0xc76c51a3
DATA sha256Constants<>+176(SB)/4, $0xd192e819
DATA sha256Constants<>+180(SB)/4, $0xd6990624
DATA sha256Constants<>+184(SB)/4, $0xf40e3585
DATA sha256Constants<>+188(SB)/4, $0x106aa070
DATA sha256Constants<>+192(SB)/4, $0x19a4c116
DATA sha256Constants<>+196(SB)/4, $0x1e376c08
DATA sha256Constants<>+200(SB)/4, $0x2748774c
DATA sha256Constants<>+204(SB)/4, $0x34b0bcb5
DATA sha256Constants<>+208(SB)/4, $0x391c0cb3
DATA sha256Constants<>+212(SB)/4, $0x4ed8aa4a
DATA sha256Constants<>+216(SB)/4, $0x5b9cca4f
DATA sha256Constants<>+220(SB)/4, $0x682e6ff3
DATA sha256Constants<>+224(SB)/4, $0x748f82ee
DATA sha256Constants<>+228(SB)/4, $0x78a5636f
DATA sha256Constants<>+232(SB)/4, $0x84c87814
DATA sha256Constants<>+236(SB)/4, $0x8cc70208
DATA sha256Constants<>+240(SB)/4, $0x90befffa
DATA sha256Constants<>+244(SB)/4, $0xa4506ceb
DATA sha256Constants<>+248(SB)/4, $0xbef9a3f7
DATA sha256Constants<>+252(SB)/4, $0xc67178f2
GLOBL sha256Constants<>(SB), RODATA|NOPTR, $256

DATA sha256Swap<>+0(SB)/4, $0x00010203
DATA sha256Swap<>+4(SB)/4, $0x04050607
DATA sha256Swap<>+8(SB)/4, $0x08090a0b
DATA sha256Swap<>+12(SB)/4, $0x0c0d0e0f
DATA sha256Swap<>+16(SB)/4, $0x00010203
DATA sha256Swap<>+20(SB)/4, $0x04050607
DATA sha256Swap<>+24(SB)/4, $0x08090a0b
DATA sha256Swap<>+28(SB)/4, $0x0c0d0e0f
DATA sha256Swap<>+32(SB)/4, $0x00010203
DATA sha256Swap<>+36(SB)/4, $0x04050607
DATA sha256Swap<>+40(SB)/4, $0x08090a0b
DATA sha256Swap<>+44(SB)/4, $0x0c0d0e0f
DATA sha256Swap<>+48(SB)/4, $0x00010203
DATA sha256Swap<>+52(SB)/4, $0x04050607
DATA sha256Swap<>+56(SB)/4, $0x08090a0b
DATA sha256Swap<>+60(SB)/4, $0x0c0d0e0f
GLOBL sha256Swap<>(SB), RODATA|NOPTR, $64
