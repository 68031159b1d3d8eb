package main

import "fmt"

// pixelLoop emits a loop over n >= 16 pixels in blocks of 16: body gets their channels, a
// register each, and where they belong in each of dst, which have a byte a pixel.
func pixelLoop(k *kernel, src, n gp, step int, dst []gp, body func(channels []vec, to []gp)) {
	i, from := k.gp(), k.gp()
	to := make([]gp, len(dst))
	for j := range to {
		to[j] = k.gp()
	}
	channels := k.several(step)
	k.blocks(n, i, 16, func() {
		k.at(src, i, step, from)
		k.op("VLD%d (%v), %s", step, from, list(channels, "B16"))
		for j, d := range dst {
			k.at(d, i, 1, to[j])
		}
		body(channels, to)
	})
}

// at makes r the address of element i of size bytes.
func (k *kernel) at(base, i gp, size int, r gp) {
	switch size {
	case 1:
		k.op("ADD %v, %v, %v", i, base, r)
	case 2:
		k.op("ADD %v<<1, %v, %v", i, base, r)
	case 3:
		k.op("ADD %v, %v, %v", i, base, r)
		k.op("ADD %v<<1, %v, %v", i, r, r)
	case 4:
		k.op("ADD %v<<2, %v, %v", i, base, r)
	}
}

func planes(name string, step int) *kernel {
	k := begin(name, "red, green, blue, src *byte, n int", fmt.Sprintf("takes n >= 16 pixels of %d bytes apart.", step))
	dst := []gp{k.param("red"), k.param("green"), k.param("blue")}
	src, n := k.param("src"), k.param("n")
	pixelLoop(k, src, n, step, dst, func(channels []vec, to []gp) {
		for c, r := range to {
			k.store(channels[c], r, 0)
		}
	})
	return k.finish()
}

func interleave() *kernel {
	k := begin("interleave3", "dst, red, green, blue *byte, n int", "makes n >= 16 pixels.")
	dst := k.param("dst")
	src := [3]gp{k.param("red"), k.param("green"), k.param("blue")}
	n, i, at := k.param("n"), k.gp(), k.gp()
	channels := k.several(3)
	k.blocks(n, i, 16, func() {
		for c, s := range src {
			k.at(s, i, 1, at)
			k.load(at, 0, channels[c])
		}
		k.at(dst, i, 3, at)
		k.op("VST3 %s, (%v)", list(channels, "B16"), at)
	})
	return k.finish()
}

// pack drops each fourth byte.
func pack() *kernel {
	k := begin("pack4", "dst, src *byte, n int", "takes n >= 16 pixels of 4 bytes.")
	dst, src, n, at, i := k.param("dst"), k.param("src"), k.param("n"), k.gp(), k.gp()
	channels := k.several(4)
	k.blocks(n, i, 16, func() {
		k.at(src, i, 4, at)
		k.op("VLD4 (%v), %s", at, list(channels, "B16"))
		k.at(dst, i, 3, at)
		k.op("VST3 %s, (%v)", list(channels[:3], "B16"), at)
	})
	return k.finish()
}

// gray multiplies 16 bits by 16, which the weights fit.
func gray(name string, step int) *kernel {
	k := begin(name, "dst, src *byte, n int", fmt.Sprintf("makes n >= 16 bytes of pixels of %d.", step))
	dst, src, n := k.param("dst"), k.param("src"), k.param("n")
	weights := k.constant(7471<<32|38470<<16|19595, 0)
	wide, sums := k.vec(), k.several(4)
	pixelLoop(k, src, n, step, []gp{dst}, func(channels []vec, to []gp) {
		for c, v := range channels[:3] {
			lower, upper := k.umlal, k.umlal2
			if c == 0 {
				lower, upper = k.umull, k.umull2
			}
			k.op("VUXTL %v.B8, %v.H8", v, wide)
			lower(sums[0], wide, weights, c)
			upper(sums[1], wide, weights, c)
			k.op("VUXTL2 %v.B16, %v.H8", v, wide)
			lower(sums[2], wide, weights, c)
			upper(sums[3], wide, weights, c)
		}
		for j := 0; j < 4; j += 2 {
			k.rshrn(sums[j], sums[j])
			k.rshrn2(sums[j], sums[j+1])
		}
		k.xtn(wide, sums[0])
		k.xtn2(wide, sums[2])
		k.store(wide, to[0], 0)
	})
	return k.finish()
}

// reverse reverses the bytes of a register.
func (k *kernel) reverse(v vec) {
	k.op("VREV64 %v.B16, %v.B16", v, v)
	k.op("VEXT $8, %v.B16, %v.B16, %v.B16", v, v, v)
}

// reverseRows reverses rows of bytes, block by block in each.
func reverseRows() *kernel {
	k := begin("reverseRows16", "dst, src *byte, width, stride, rows int",
		"reverses rows of width >= 16 bytes. Those of src begin stride bytes apart.")
	dst, src, width := k.param("dst"), k.param("src"), k.param("width")
	stride, rows := k.param("stride"), k.param("rows")
	i, end, at, x := k.gp(), k.gp(), k.gp(), k.vec()
	k.label("row")
	k.op("ADD %v, %v, %v", width, dst, end)
	k.blocks(width, i, 16, func() {
		k.at(src, i, 1, at)
		k.load(at, 0, x)
		k.reverse(x)
		k.op("SUB %v, %v, %v", i, end, at)
		k.store(x, at, -16)
	})
	k.op("ADD %v, %v, %v", stride, src, src)
	k.op("MOVD %v, %v", end, dst)
	k.op("SUBS $1, %v, %v", rows, rows)
	k.op("BGT row")
	return k.finish()
}

func reverse3() *kernel {
	k := begin("reverse3", "end, src *byte, n int", "writes n >= 16 pixels from the last byte at end down.")
	end, src, n, i, at := k.param("end"), k.param("src"), k.param("n"), k.gp(), k.gp()
	channels := k.several(3)
	k.blocks(n, i, 16, func() {
		k.at(src, i, 3, at)
		k.op("VLD3 (%v), %s", at, list(channels, "B16"))
		for _, v := range channels {
			k.reverse(v)
		}
		k.op("SUB %v, %v, %v", i, end, at)
		k.op("SUB %v<<1, %v, %v", i, at, at)
		k.op("SUB $47, %v, %v", at, at)
		k.op("VST3 %s, (%v)", list(channels, "B16"), at)
	})
	return k.finish()
}

// moments keeps sums and squares in 32 bits, which the length limit keeps from overflowing:
// each of four sums of squares takes 8 * 255^2 of 32 bytes.
func moments() *kernel {
	k := begin("moments32", "out *[4][32]byte, src *byte, n int",
		"takes n bytes, a positive multiple of 32, at most 2^18.")
	out, src, n := k.param("out"), k.param("src"), k.param("n")
	sums := k.several(4)   // of bytes, of squares
	limits := k.several(4) // least, greatest
	for _, v := range append(sums, limits...) {
		k.op("VEOR %v.B16, %v.B16, %v.B16", v, v, v)
	}
	for _, v := range limits[:2] {
		k.op("VCMEQ %v.B16, %v.B16, %v.B16", v, v, v)
	}
	x, t := k.several(2), k.vec()
	k.loop(n, 32, func() {
		k.op("VLD1.P 32(%v), %s", src, list(x, "B16"))
		for i, v := range x {
			k.op("VUMIN %v.B16, %v.B16, %v.B16", v, limits[i], limits[i])
			k.op("VUMAX %v.B16, %v.B16, %v.B16", v, limits[i+2], limits[i+2])
			k.uaddlpBytes(t, v)
			k.uadalp(sums[i], t)
			k.umullBytes(t, v, v)
			k.uadalp(sums[i+2], t)
			k.umullBytes2(t, v, v)
			k.uadalp(sums[i+2], t)
		}
	})
	for _, v := range sums {
		k.uaddlpWords(v, v)
	}
	k.op("VST1.P %s, 64(%v)", list(sums, "B16"), out)
	k.op("VST1 %s, (%v)", list(limits, "B16"), out)
	return k.finish()
}
