package main

// array emits a kernel over n numbers, a positive multiple of 8: body works on the next 8.
func array(name, params, doc string, setup func(k *kernel) (body func())) *kernel {
	k := begin(name, params, doc+" n is a positive multiple of 8.")
	n := k.param("n")
	k.loop(n, 8, setup(k))
	return k.finish()
}

// inPlace emits a kernel that changes float64 numbers by two others.
func inPlace(name, a, b, doc string, op func(k *kernel, x, a, b vec)) *kernel {
	return array(name, "x *float64, n int, "+a+", "+b+" float64", doc, func(k *kernel) func() {
		p, va, vb, x := k.param("x"), k.number(a), k.number(b), k.several(4)
		return func() {
			k.op("VLD1 (%v), %s", p, list(x, "D2"))
			for _, v := range x {
				op(k, v, va, vb)
			}
			k.op("VST1.P %s, 64(%v)", list(x, "D2"), p)
		}
	})
}

func standardize64() *kernel {
	return inPlace("standardize64", "mean", "std", "is (x-mean)/std.", func(k *kernel, x, mean, std vec) {
		k.fsub64(x, x, mean)
		k.fdiv64(x, x, std)
	})
}

func scale64() *kernel {
	return inPlace("scale64", "factor", "offset", "is x*factor + offset, both rounded.",
		func(k *kernel, x, factor, offset vec) {
			k.fmul64(x, x, factor)
			k.fadd64(x, x, offset)
		})
}

// clip64 replaces what compares as it must, as FMAX and FMIN make another zero of -0.
func clip64() *kernel {
	return inPlace("clip64", "lo", "hi", "is lo below it, hi above it, else x, also if that is NaN.",
		func(k *kernel, x, lo, hi vec) {
			const mask = vec(31)
			k.fcmgt64(mask, lo, x)
			k.op("VBIT %v.B16, %v.B16, %v.B16", mask, lo, x)
			k.fcmgt64(mask, x, hi)
			k.op("VBIT %v.B16, %v.B16, %v.B16", mask, hi, x)
		})
}

func widen8() *kernel {
	return array("widen8", "dst *float64, src *byte, n int", "converts bytes.", func(k *kernel) func() {
		dst, src, x := k.param("dst"), k.param("src"), k.several(4)
		return func() {
			k.op("VLD1.P 8(%v), [%v.B8]", src, x[0])
			k.op("VUXTL %v.B8, %v.H8", x[0], x[0])
			k.op("VUXTL2 %v.H8, %v.S4", x[0], x[2])
			k.op("VUXTL %v.H4, %v.S4", x[0], x[0])
			for _, i := range []int{0, 2} {
				k.op("VUXTL2 %v.S4, %v.D2", x[i], x[i+1])
				k.op("VUXTL %v.S2, %v.D2", x[i], x[i])
			}
			for _, v := range x {
				k.ucvtf64(v, v)
			}
			k.op("VST1.P %s, 64(%v)", list(x, "D2"), dst)
		}
	})
}

func widen32() *kernel {
	return array("widen32", "dst *float64, src *byte, n int", "converts float32 as bytes.", func(k *kernel) func() {
		dst, src, in, x := k.param("dst"), k.param("src"), k.several(2), k.several(4)
		return func() {
			k.op("VLD1.P 32(%v), %s", src, list(in, "S4"))
			for i, v := range in {
				k.singlesToDoubles(x[2*i], v)
				k.singlesToDoubles2(x[2*i+1], v)
			}
			k.op("VST1.P %s, 64(%v)", list(x, "D2"), dst)
		}
	})
}

func narrow32() *kernel {
	return array("narrow32", "dst *byte, src *float64, n int", "rounds to float32 as bytes.", func(k *kernel) func() {
		dst, src, x, out := k.param("dst"), k.param("src"), k.several(4), k.several(2)
		return func() {
			k.op("VLD1.P 64(%v), %s", src, list(x, "D2"))
			for i, v := range out {
				k.doublesToSingles(v, x[2*i])
				k.doublesToSingles2(v, x[2*i+1])
			}
			k.op("VST1.P %s, 32(%v)", list(out, "S4"), dst)
		}
	})
}

func round32() *kernel {
	return array("round32", "x *float64, n int", "rounds to values of float32.", func(k *kernel) func() {
		p, x := k.param("x"), k.several(4)
		return func() {
			k.op("VLD1 (%v), %s", p, list(x, "D2"))
			for _, v := range x {
				k.doublesToSingles(v, v)
				k.singlesToDoubles(v, v)
			}
			k.op("VST1.P %s, 64(%v)", list(x, "D2"), p)
		}
	})
}

// prefetch asks for all cache lines of some bytes.
func prefetch() *kernel {
	k := begin("prefetchLines", "p *byte, n int", "begins to load n > 0 bytes to the caches.")
	p, n := k.param("p"), k.param("n")
	k.op("ADD %v, %v, %v", p, n, n)
	k.op("AND $-64, %v, %v", p, p)
	k.label("loop")
	k.op("PRFM (%v), PLDL1KEEP", p)
	k.op("ADD $64, %v", p)
	k.op("CMP %v, %v", n, p)
	k.op("BLO loop")
	return k.finish()
}
