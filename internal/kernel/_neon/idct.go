package main

// Constants of libjpeg's jidctint.c, FIX(x) = x * 2^13.
const (
	fix0298631336 = 2446
	fix0390180644 = 3196
	fix0541196100 = 4433
	fix0765366865 = 6270
	fix0899976223 = 7373
	fix1175875602 = 9633
	fix1501321110 = 12299
	fix1847759065 = 15137
	fix1961570560 = 16069
	fix2053119869 = 16819
	fix2562915447 = 20995
	fix3072711026 = 25172
)

// A transform is an inverse transform in the making.
type transform struct {
	k       *kernel
	factors [2]vec // 16 bits each, as factor finds them
	half    vec    // of what is shifted out

	sum, z3, z4 vec    // of rows
	even, odd   []vec  // sums of half a row
	t           [2]vec // of these
}

var factors = []int{
	fix0541196100, fix0541196100 - fix1847759065, fix0541196100 + fix0765366865,
	fix1175875602 - fix1961570560, fix1175875602, fix1175875602 - fix0390180644,
	-fix0899976223, fix1501321110 - fix0899976223, -fix2562915447,
	fix3072711026 - fix2562915447, fix2053119869 - fix2562915447, fix0298631336 - fix0899976223,
}

func newTransform(k *kernel) *transform {
	return &transform{
		k:       k,
		factors: [2]vec{k.constant(words(factors[:4]...), words(factors[4:8]...)), k.constant(words(factors[8:]...), 0)},
		half:    k.vec(), sum: k.vec(), z3: k.vec(), z4: k.vec(),
		even: k.several(4), odd: k.several(4), t: [2]vec{k.vec(), k.vec()},
	}
}

// idctPair transforms a block after the other: each row in a register, whose halves are
// widened to sums of 32 bits.
func idctPair() *kernel {
	k := begin("idctPairKernel", "dst *byte, stride int, coefs *[128]int16, quant *[64]uint16",
		"dequantizes and transforms two blocks to 8 rows of 16 samples.")
	dst, stride, coefs, quant := k.param("dst"), k.param("stride"), k.param("coefs"), k.param("quant")
	t := newTransform(k)
	a, b := k.several(8), k.several(8)
	blocks, at := k.gp(), k.gp()
	k.op("MOVD $2, %v", blocks)
	k.loop(blocks, 1, func() {
		k.op("MOVD %v, %v", quant, at)
		for i := 0; i < 8; i += 4 {
			k.op("VLD1.P 64(%v), %s", coefs, list(a[i:i+4], "H8"))
			k.op("VLD1.P 64(%v), %s", at, list(b[i:i+4], "H8"))
		}
		for i, v := range a {
			k.mulWords(v, v, b[i])
		}
		t.pass(b, a, 11, t.saturated)
		k.transpose(a, b, "H8", "S4", "D2")
		t.pass(b, a, 18, t.upper)
		for _, v := range b {
			k.sqshrn2(v, v)
		}
		k.transpose(a, b, "B8", "H4", "S2")
		k.op("VMOVI $128, %v.B16", t.sum)
		k.op("MOVD %v, %v", dst, at)
		for _, v := range a {
			k.op("VEOR %v.B8, %v.B8, %v.B8", t.sum, v, v)
			k.op("FMOVD F%d, (%v)", v, at)
			k.op("ADD %v, %v", stride, at)
		}
		k.op("ADD $8, %v", dst)
	})
	return k.finish()
}

// pass transforms the columns of in, which it changes, to the columns of out. narrow rounds its numbers, drops their
// lowest bits, and makes numbers of 16 bits.
func (t *transform) pass(out, in []vec, shift int, narrow func(h int, out, mirror, even, odd vec)) {
	k := t.k
	half := uint64(1) << (shift - 1)
	k.op("VMOVQ $%#x, $%#x, %v", half<<32|half, half<<32|half, t.half)
	k.op("VADD %v.H8, %v.H8, %v.H8", in[4], in[0], t.sum)
	k.op("VSUB %v.H8, %v.H8, %v.H8", in[4], in[0], in[4])
	k.op("VADD %v.H8, %v.H8, %v.H8", in[7], in[3], t.z3)
	k.op("VADD %v.H8, %v.H8, %v.H8", in[5], in[1], t.z4)
	for h := range 2 {
		t.evenSums(h, in)
		t.oddSums(h, in)
		for i, even := range t.even {
			narrow(h, out[i], out[7-i], even, t.odd[i])
		}
	}
}

// products makes d = a*f + b*g for half h of the rows a and b.
func (t *transform) products(h int, d, a vec, f int, b vec, g int) {
	t.product([]func(d, n, m vec, lane int){t.k.smull, t.k.smull2}[h], d, a, f)
	t.product([]func(d, n, m vec, lane int){t.k.smlal, t.k.smlal2}[h], d, b, g)
}

// more makes d += a*f + b*g for half h of the rows a and b.
func (t *transform) more(h int, d, a vec, f int, b vec, g int) {
	add := []func(d, n, m vec, lane int){t.k.smlal, t.k.smlal2}[h]
	t.product(add, d, a, f)
	t.product(add, d, b, g)
}

func (t *transform) product(op func(d, n, m vec, lane int), d, n vec, value int) {
	for i, f := range factors {
		if f == value {
			op(d, n, t.factors[i/8], i%8)
			return
		}
	}
	panic("a factor that is in no register")
}

// evenSums are of rows 0, 2, 4, 6: sum and in[4] are the sum and the difference of rows 0
// and 4.
func (t *transform) evenSums(h int, in []vec) {
	k, e := t.k, t.even
	t.products(h, t.t[0], in[2], fix0541196100+fix0765366865, in[6], fix0541196100)
	t.products(h, t.t[1], in[2], fix0541196100, in[6], fix0541196100-fix1847759065)
	for i, row := range []vec{t.sum, in[4]} {
		[]func(d, n vec){k.sshll13, k.sshll13by2}[h](e[i], row)
		k.op("VADD %v.S4, %v.S4, %v.S4", t.half, e[i], e[i])
		k.op("VSUB %v.S4, %v.S4, %v.S4", t.t[i], e[i], e[3-i])
		k.op("VADD %v.S4, %v.S4, %v.S4", t.t[i], e[i], e[i])
	}
}

// oddSums are of rows 1, 3, 5, 7.
func (t *transform) oddSums(h int, in []vec) {
	o := t.odd
	t.products(h, o[0], t.z3, fix1175875602, t.z4, fix1175875602-fix0390180644)
	t.products(h, o[1], t.z3, fix1175875602-fix1961570560, t.z4, fix1175875602)
	for i := range 2 {
		t.k.op("VMOV %v.B16, %v.B16", o[i], o[2+i])
	}
	t.more(h, o[0], in[7], -fix0899976223, in[1], fix1501321110-fix0899976223)
	t.more(h, o[1], in[5], -fix2562915447, in[3], fix3072711026-fix2562915447)
	t.more(h, o[2], in[5], fix2053119869-fix2562915447, in[3], -fix2562915447)
	t.more(h, o[3], in[7], fix0298631336-fix0899976223, in[1], -fix0899976223)
}

// saturated drops 11 bits.
func (t *transform) saturated(h int, out, mirror, even, odd vec) {
	narrow := []func(d, n vec){t.k.sqshrn11, t.k.sqshrn11by2}[h]
	t.k.op("VADD %v.S4, %v.S4, %v.S4", odd, even, t.t[0])
	t.k.op("VSUB %v.S4, %v.S4, %v.S4", odd, even, t.t[1])
	narrow(out, t.t[0])
	narrow(mirror, t.t[1])
}

// upper drops 16 bits.
func (t *transform) upper(h int, out, mirror, even, odd vec) {
	[]func(d, n, m vec){t.k.addhn, t.k.addhn2}[h](out, even, odd)
	[]func(d, n, m vec){t.k.subhn, t.k.subhn2}[h](mirror, even, odd)
}

// transpose makes the rows in to the columns of from, which it changes. The arrangements are
// of numbers, of pairs and of fours.
func (k *kernel) transpose(to, from []vec, arrangements ...string) {
	for stage, arrangement := range arrangements {
		d := 1 << stage
		for i := range from {
			if i&d == 0 {
				k.op("VTRN1 %[1]v.%[4]s, %[2]v.%[4]s, %[3]v.%[4]s", from[i+d], from[i], to[i], arrangement)
				k.op("VTRN2 %[1]v.%[4]s, %[2]v.%[4]s, %[3]v.%[4]s", from[i+d], from[i], to[i+d], arrangement)
			}
		}
		from, to = to, from
	}
}
