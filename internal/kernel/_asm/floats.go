package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// inLanes emits a loop over n numbers, a positive multiple of 16, that adds the term of each to 16
// sums: term works on 4 numbers at src in a register, in place. The sums go to out.
func inLanes(out, src, n GPVirtual, each func(), term func(x VecVirtual)) {
	var sums [4]VecVirtual
	for i := range sums {
		sums[i] = YMM()
		VXORPD(sums[i], sums[i], sums[i])
	}
	Label("loop")
	each()
	for i, sum := range sums {
		x := YMM()
		VCVTPS2PD(at(src, 16*i), x)
		term(x)
		VADDPD(x, sum, sum)
	}
	ADDQ(Imm(64), src)
	SUBQ(Imm(16), n)
	JG(LabelRef("loop"))
	for i, sum := range sums {
		VMOVUPD(sum, at(out, 32*i))
	}
}

func sum32() {
	function("sum32", "func(out *[16]float64, limits *[2][8]float32, src *float32, n int)",
		"sum32 sums n numbers, a positive multiple of 16, in lanes. limits are the least and the greatest of lanes of 8.")
	out, limits, src, n := param("out"), param("limits"), param("src"), param("n")
	low, high, x := YMM(), YMM(), YMM()
	VMOVUPS(at(src, 0), low)
	VMOVUPS(low, high)
	inLanes(out, src, n, func() {
		for i := range 2 {
			VMOVUPS(at(src, 32*i), x)
			VMINPS(x, low, low)
			VMAXPS(x, high, high)
		}
	}, func(VecVirtual) {})
	VMOVUPS(low, at(limits, 0))
	VMOVUPS(high, at(limits, 32))
	finish()
}

func squares32() {
	function("squares32", "func(out *[16]float64, src *float32, n int, mean float64)",
		"squares32 sums (x-mean)^2 of n numbers, a positive multiple of 16, in lanes.")
	out, src, n := param("out"), param("src"), param("n")
	mean := YMM()
	m, err := Param("mean").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(m.Addr, mean)
	inLanes(out, src, n, func() {}, func(x VecVirtual) {
		VSUBPD(mean, x, x)
		VMULPD(x, x, x)
	})
	finish()
}

// piecesOf emits the sums of pieces of 1024 numbers and, in the same loop, the squares of the piece
// before: so sums and squares do not wait for each other's additions. The first and the last
// iteration also write wrong sums to a neighboring place; the right sums of that place are written
// afterwards, or were written before and are not touched.
func piecesOf(name string, register func() VecVirtual, doc string) {
	function(name, "func(sums, squares *float64, src *float32, n int) (low, high float32)", doc)
	sums, squares, src, n := param("sums"), param("squares"), param("src"), param("n")
	lanes := int(register().Size() / 8)
	sum, square := make([]VecVirtual, 16/lanes), make([]VecVirtual, 16/lanes)
	for i := range sum {
		sum[i], square[i] = register(), register()
	}
	low, high, mean := register(), register(), register()
	VMOVUPS(at(src, 0), low)
	VMOVUPS(low, high)
	zero(mean)
	before, step, end, i := GP64(), GP64(), GP64(), GP64()
	MOVQ(src, before)
	XORQ(step, step)
	Label("piece")
	for i := range sum {
		zero(sum[i])
		zero(square[i])
	}
	XORQ(i, i)
	MOVQ(U32(1024), end)
	Label("loop")
	for k := range sum {
		x, y, d := register(), register(), register()
		if k%2 == 0 { // as many numbers as two registers of float64 have
			VMOVUPS(index(src, i, 4, 4*lanes*k), x)
			VMINPS(x, low, low)
			VMAXPS(x, high, high)
		}
		VCVTPS2PD(index(src, i, 4, 4*lanes*k), y)
		VADDPD(y, sum[k], sum[k])
		VCVTPS2PD(index(before, i, 4, 4*lanes*k), d)
		VSUBPD(mean, d, d)
		VMULPD(d, d, d)
		VADDPD(d, square[k], square[k])
	}
	ADDQ(Imm(16), i)
	CMPQ(i, end)
	JL(LabelRef("loop"))
	total := ofLanes(sum)
	VMOVSD(total, at(sums, 0))
	VMOVSD(ofLanes(square), at(squares, 0))
	VMULSD(once("perPiece", func() Mem {
		m := GLOBL("perPiece", RODATA|NOPTR)
		DATA(0, F64(1.0/1024))
		return m
	}), total, total)
	VBROADCASTSD(total, mean)
	ADDQ(step, squares)
	MOVQ(U32(8), step)
	MOVQ(src, before)
	DECQ(n)
	JS(LabelRef("done"))
	JZ(LabelRef("piece"))
	ADDQ(U32(4*1024), src)
	ADDQ(Imm(8), sums)
	JMP(LabelRef("piece"))
	Label("done")
	Store(limit(low, VMINPS), Return("low"))
	Store(limit(high, VMAXPS), Return("high"))
	finish()
}

// ofLanes adds 16 lanes in halves.
func ofLanes(l []VecVirtual) VecVirtual {
	for ; len(l) > 1; l = l[:len(l)/2] {
		for i := range len(l) / 2 {
			VADDPD(l[i+len(l)/2], l[i], l[i])
		}
	}
	half, v, sum := YMM(), l[0], XMM()
	if v.Size() == 64 {
		VEXTRACTF64X4(Imm(1), v, half)
		VADDPD(half, v.AsY(), v.AsY())
	}
	VEXTRACTF128(Imm(1), v.AsY(), half.AsX())
	VADDPD(half.AsX(), v.AsX(), sum)
	VPERMILPD(Imm(1), sum, half.AsX())
	VADDSD(half.AsX(), sum, sum)
	return sum
}

// limit reduces v to a single number by op, a minimum or maximum.
func limit(v VecVirtual, op func(...Op)) Register {
	half, x := YMM(), v.AsX()
	if v.Size() == 64 {
		VEXTRACTF64X4(Imm(1), v, half)
		op(half, v.AsY(), v.AsY())
	}
	VEXTRACTF128(Imm(1), v.AsY(), half.AsX())
	op(half.AsX(), x, x)
	VPERMILPS(Imm(0x4e), x, half.AsX())
	op(half.AsX(), x, x)
	VPERMILPS(Imm(0xb1), x, half.AsX())
	op(half.AsX(), x, x)
	return x
}

// zero clears a register.
func zero(v VecVirtual) {
	if v.Size() == 64 {
		VPXORQ(v, v, v)
		return
	}
	VXORPD(v, v, v)
}

func widen16() {
	halves := func(name, doc string, convert func(src Mem, x VecVirtual)) {
		array(name, "dst *float32, src *uint16, n int", doc, func() func(GPVirtual, int) {
			dst, src := param("dst"), param("src")
			return func(i GPVirtual, disp int) {
				if disp == 0 { // all 8 at once
					x := YMM()
					convert(index(src, i, 2, 0), x)
					VMOVUPS(x, index(dst, i, 4, 0))
				}
			}
		})
	}
	halves("widenF16", "converts float16 as bits.", func(src Mem, x VecVirtual) { VCVTPH2PS(src, x) })
	halves("widenBF16", "converts bfloat16 as bits.", func(src Mem, x VecVirtual) {
		VPMOVZXWD(src, x)
		VPSLLD(Imm(16), x, x)
	})
}
