package main

// inLanes emits a loop over n numbers, a positive multiple of 16, that adds the term of each to 16
// sums: term works on 2 numbers in a register, in place. each sees all of them before, as they are.
// The sums go to out.
func inLanes(k *kernel, out, src, n gp, each func(x []vec), term func(x vec)) {
	sums, in, x := k.several(8), k.several(4), k.several(2)
	for _, sum := range sums {
		k.op("VEOR %v.B16, %v.B16, %v.B16", sum, sum, sum)
	}
	k.loop(n, 16, func() {
		k.op("VLD1.P 64(%v), %s", src, list(in, "S4"))
		each(in)
		for i, v := range in {
			k.singlesToDoubles(x[0], v)
			k.singlesToDoubles2(x[1], v)
			for j := range x {
				term(x[j])
				k.fadd64(sums[2*i+j], sums[2*i+j], x[j])
			}
		}
	})
	for _, part := range [][]vec{sums[:4], sums[4:]} {
		k.op("VST1.P %s, 64(%v)", list(part, "D2"), out)
	}
}

func sum32() *kernel {
	k := begin("sum32", "out *[16]float64, limits *[2][8]float32, src *float32, n int",
		"sums n numbers, a positive multiple of 16, in lanes. limits are the least and the greatest of lanes of 8.")
	out, limits, src, n := k.param("out"), k.param("limits"), k.param("src"), k.param("n")
	lanes := k.several(4) // the least of 8, the greatest of 8
	low, high := lanes[:2], lanes[2:]
	for _, v := range [][]vec{low, high} {
		k.op("VLD1 (%v), %s", src, list(v, "S4"))
	}
	inLanes(k, out, src, n, func(x []vec) {
		for i, v := range x {
			k.fmin(low[i%2], low[i%2], v)
			k.fmax(high[i%2], high[i%2], v)
		}
	}, func(vec) {})
	k.op("VST1 %s, (%v)", list(lanes, "S4"), limits)
	return k.finish()
}

func squares32() *kernel {
	k := begin("squares32", "out *[16]float64, src *float32, n int, mean float64",
		"sums (x-mean)^2 of n numbers, a positive multiple of 16, in lanes.")
	out, src, n, mean := k.param("out"), k.param("src"), k.param("n"), k.number("mean")
	inLanes(k, out, src, n, func([]vec) {}, func(x vec) {
		k.fsub64(x, x, mean)
		k.fmul64(x, x, x)
	})
	return k.finish()
}

// widen16 emits a kernel that widens each register to two.
func widen16(name, doc string, lower, upper func(k *kernel, d, n vec)) *kernel {
	return array(name, "dst *float32, src *uint16, n int", doc, func(k *kernel) func() {
		dst, src, in, x := k.param("dst"), k.param("src"), k.vec(), k.several(2)
		return func() {
			k.op("VLD1.P 16(%v), [%v.H8]", src, in)
			lower(k, x[0], in)
			upper(k, x[1], in)
			k.op("VST1.P %s, 32(%v)", list(x, "S4"), dst)
		}
	})
}

func widenF16() *kernel {
	return widen16("widenF16", "converts float16 as bits.", (*kernel).halvesToSingles, (*kernel).halvesToSingles2)
}

func widenBF16() *kernel {
	return widen16("widenBF16", "converts bfloat16 as bits.", func(k *kernel, d, n vec) {
		k.op("VUXTL %v.H4, %v.S4", n, d)
		k.op("VSHL $16, %v.S4, %v.S4", d, d)
	}, func(k *kernel, d, n vec) {
		k.op("VUXTL2 %v.H8, %v.S4", n, d)
		k.op("VSHL $16, %v.S4, %v.S4", d, d)
	})
}
