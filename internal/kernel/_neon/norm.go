package main

// A store writes 8 numbers, which are in two registers that it may change, to memory.
type store struct {
	goType string
	size   int // of a number
	begin  func(k *kernel) (emit func(lo, hi vec, to gp, disp int))
}

var storeF32 = store{"float32", 4, func(k *kernel) func(lo, hi vec, to gp, disp int) {
	return func(lo, hi vec, to gp, disp int) {
		k.store(lo, to, 4*disp)
		k.store(hi, to, 4*disp+16)
	}
}}

var storeF16 = store{"uint16", 2, func(k *kernel) func(lo, hi vec, to gp, disp int) {
	return func(lo, hi vec, to gp, disp int) {
		k.singlesToHalves(lo, lo)
		k.singlesToHalves2(lo, hi)
		k.store(lo, to, 2*disp)
	}
}}

// storeBF16 rounds to nearest, halves away from zero: a half is so rare among 256 numbers
// that looking for one in advance is cheaper.
var storeBF16 = store{"uint16", 2, func(k *kernel) func(lo, hi vec, to gp, disp int) {
	half := k.constant(0x00008000_00008000, 0x00008000_00008000)
	return func(lo, hi vec, to gp, disp int) {
		k.addhn(lo, lo, half)
		k.addhn2(lo, hi, half)
		k.store(lo, to, 2*disp)
	}
}}

// A formula turns the bytes 0 to 255 into numbers. It loads its coefficients for three phases of
// 8 elements from the table, for one or both halves of each phase.
type formula struct {
	table string // Go type
	doc   string
	load  func(k *kernel, table gp, halves int) converter
}

// A converter turns the integers in x into numbers, by half h of phase i. The result may be in another
// register, which is that half's.
type converter struct {
	convert func(i, h int, x vec) vec
	widen   func(mask vec) // changes a mask that would make 32-bit integers of bytes
}

// coefficients loads rows of a table, each of 8 numbers.
func coefficients(k *kernel, table gp, first, rows, halves int) [][]vec {
	c := make([][]vec, rows)
	for i := range c {
		for h := range halves {
			c[i] = append(c[i], k.vec())
			k.load(table, 32*(first+i)+16*h, c[i][h])
		}
	}
	return c
}

// exact is (x*unit - mean) * std with std in two parts, whose product is the quotient by
// the number whose reciprocal they are. Package vec says what x is, and what is added to it.
var exact = formula{"*[11][8]float32", "in float32, rounded after each step",
	func(k *kernel, table gp, halves int) converter {
		unit := coefficients(k, table, 0, 2, 1)
		again, bytes := unit[0][0], unit[1][0]
		high := k.constant(0x80808080_80808080, 0x80808080_80808080)
		k.op("VAND %v.B16, %v.B16, %v.B16", bytes, high, high)
		c := coefficients(k, table, 2, 9, halves)
		t := k.several(2)
		return converter{
			convert: func(i, h int, x vec) vec {
				of := h % halves
				k.ucvtf(x, x)
				k.fmla(x, x, again)
				k.fsub(t[h], x, c[3*i][of])
				k.fmul(x, t[h], c[3*i+2][of])
				k.fmla(x, t[h], c[3*i+1][of])
				return x
			},
			widen: func(mask vec) {
				k.op("VTBL %v.B16, [%v.B16], %v.B16", bytes, mask, mask)
				k.op("VORR %v.B16, %v.B16, %v.B16", high, mask, mask)
			},
		}
	}}

// affine is x*scale + bias, rounded once: less than exact, but as a rule the same when
// rounded to 16 bits.
var affine = formula{"*[6][8]float32", "by one multiplication and addition",
	func(k *kernel, table gp, halves int) converter {
		c := coefficients(k, table, 0, 6, halves)
		t := k.several(2)
		return converter{
			convert: func(i, h int, x vec) vec {
				of := h % halves
				k.ucvtf(x, x)
				k.op("VMOV %v.B16, %v.B16", c[2*i+1][of], t[h])
				k.fmla(t[h], x, c[2*i][of])
				return t[h]
			},
			widen: func(vec) {},
		}
	}}

// norm emits the kernel for neighboring bytes.
func norm(name string, f formula, s store) *kernel {
	k := begin(name, "dst *"+s.goType+", src *byte, n int, table "+f.table,
		"converts n >= 24 bytes "+f.doc+".\nPhase i of the table is for bytes 8i to 8i+7 of each 24.")
	dst, src, n, table := k.param("dst"), k.param("src"), k.param("n"), k.param("table")
	emit := s.begin(k)
	c := f.load(k, table, 2)
	masks := k.widenMasks(2)
	for _, m := range masks {
		c.widen(m)
	}
	i, bytes, x := k.gp(), k.vec(), k.several(2)
	from, to := k.gp(), k.gp()
	k.blocks(n, i, 24, func() {
		k.at(src, i, 1, from)
		k.at(dst, i, s.size, to)
		for j := range 3 {
			k.load8(from, 8*j, bytes)
			for h, m := range masks {
				k.op("VTBL %v.B16, [%v.B16], %v.B16", m, bytes, x[h])
			}
			emit(c.convert(j, 0, x[0]), c.convert(j, 1, x[1]), to, 8*j)
		}
	})
	return k.finish()
}

// planesNorm emits the kernel for pixels, whose channels go to three arrays.
func planesNorm(name string, f formula, s store) *kernel {
	k := begin(name, "red, green, blue *"+s.goType+", src *byte, n, step int, mask *[3][32]byte, table "+f.table,
		"converts n >= 8 pixels "+f.doc+".\nPhase i of the table is for channel i.")
	dst := [3]gp{k.param("red"), k.param("green"), k.param("blue")}
	src, n, step, mask, table := k.param("src"), k.param("n"), k.param("step"), k.param("mask"), k.param("table")
	emit := s.begin(k)
	c := f.load(k, table, 1)
	gather := coefficients(k, mask, 0, 3, 2)
	for _, halves := range gather {
		c.widen(halves[0])
		c.widen(halves[1])
	}
	i, to, at := k.gp(), k.gp(), k.gp()
	pixels, x := k.several(2), k.several(2)
	second := k.gp() // of 8 pixels, the last 16 bytes begin at 8*step - 16
	k.op("LSL $3, %v, %v", step, second)
	k.op("SUB $16, %v, %v", second, second)
	k.blocks(n, i, 8, func() {
		k.op("MUL %v, %v, %v", step, i, at)
		k.op("ADD %v, %v, %v", src, at, at)
		k.load(at, 0, pixels[0])
		k.op("ADD %v, %v, %v", second, at, at)
		k.load(at, 0, pixels[1])
		for ch := range 3 {
			for h := range x {
				k.op("VTBL %v.B16, [%v.B16], %v.B16", gather[ch][h], pixels[h], x[h])
			}
			k.at(dst[ch], i, s.size, to)
			emit(c.convert(ch, 0, x[0]), c.convert(ch, 1, x[1]), to, 0)
		}
	})
	return k.finish()
}
