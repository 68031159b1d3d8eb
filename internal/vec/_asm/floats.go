package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// inLanes emits a loop over n numbers, a positive multiple of 16, that adds to 16 sums what
// term makes of each: of 4 numbers at src in a register, in place. The sums go to out.
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
