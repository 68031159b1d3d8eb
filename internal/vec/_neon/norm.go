package main

// A store writes 8 numbers, which are in two registers that it may change, to memory.
type store struct {
	goType string
	shift  int // log2 of the size of a number
	begin  func(k *kernel) (emit func(lo, hi vec, to gp, disp int))
}

var storeF32 = store{"float32", 2, func(k *kernel) func(lo, hi vec, to gp, disp int) {
	return func(lo, hi vec, to gp, disp int) {
		k.store(lo, to, 4*disp)
		k.store(hi, to, 4*disp+16)
	}
}}

var storeF16 = store{"uint16", 1, func(k *kernel) func(lo, hi vec, to gp, disp int) {
	return func(lo, hi vec, to gp, disp int) {
		k.singlesToHalves(lo, lo)
		k.singlesToHalves2(lo, hi)
		k.store(lo, to, 2*disp)
	}
}}

// storeBF16 rounds to nearest, halves away from zero: a half is so rare among 256 numbers
// that looking for one in advance is cheaper.
var storeBF16 = store{"uint16", 1, func(k *kernel) func(lo, hi vec, to gp, disp int) {
	half := k.constant(0x00008000_00008000, 0x00008000_00008000)
	return func(lo, hi vec, to gp, disp int) {
		k.addhn(lo, lo, half)
		k.addhn2(lo, hi, half)
		k.store(lo, to, 2*disp)
	}
}}

// A formula makes numbers of the bytes 0 to 255. It loads its coefficients for three phases
// of 8 elements from the table, for one or both halves of each, and returns what converts the
// 32-bit integers in x by half h of phase i. The result may be in another register, which is
// that half's.
type formula struct {
	table string // Go type
	doc   string
	load  func(k *kernel, table gp, halves int) func(i, h int, x vec) vec
}

// coefficients loads rows of a table, of which each has 8 numbers.
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

// exact is (x*unit - mean) * std with both factors in two parts, of which the product is the
// quotient by the number whose reciprocal they are.
var exact = formula{"*[11][8]float32", "in float32, rounded after each step", func(k *kernel, table gp, halves int) func(i, h int, x vec) vec {
	unit := coefficients(k, table, 0, 2, 1)
	c := coefficients(k, table, 2, 9, halves)
	t := k.several(2)
	scale := func(to, x, hi, lo vec) {
		k.fmul(to, x, lo)
		k.fmla(to, x, hi)
	}
	return func(i, h int, x vec) vec {
		of := h % halves
		k.ucvtf(x, x)
		scale(t[h], x, unit[0][0], unit[1][0])
		k.fsub(t[h], t[h], c[3*i][of])
		scale(x, t[h], c[3*i+1][of], c[3*i+2][of])
		return x
	}
}}

// affine is x*scale + bias, rounded once: less than exact, but as a rule the same when
// rounded to 16 bits.
var affine = formula{"*[6][8]float32", "by one multiplication and addition", func(k *kernel, table gp, halves int) func(i, h int, x vec) vec {
	c := coefficients(k, table, 0, 6, halves)
	t := k.several(2)
	return func(i, h int, x vec) vec {
		of := h % halves
		k.ucvtf(x, x)
		k.op("VMOV %v.B16, %v.B16", c[2*i+1][of], t[h])
		k.fmla(t[h], x, c[2*i][of])
		return t[h]
	}
}}

// norm emits the kernel for neighbouring bytes.
func norm(name string, f formula, s store) *kernel {
	k := begin(name, "dst *"+s.goType+", src *byte, n int, table "+f.table,
		"converts n >= 24 bytes "+f.doc+".\nPhase i of the table is for bytes 8i to 8i+7 of each 24.")
	dst, src, n, table := k.param("dst"), k.param("src"), k.param("n"), k.param("table")
	emit := s.begin(k)
	convert := f.load(k, table, 2)
	i, x := k.gp(), k.several(2)
	from, setFrom := k.plus(src, i, 0)
	to, setTo := k.plus(dst, i, s.shift)
	k.blocks(n, i, 24, func() {
		setFrom()
		setTo()
		for j := range 3 {
			k.load8(from, 8*j, x[0])
			k.op("VUXTL %v.B8, %v.H8", x[0], x[0])
			k.op("VUXTL2 %v.H8, %v.S4", x[0], x[1])
			k.op("VUXTL %v.H4, %v.S4", x[0], x[0])
			emit(convert(j, 0, x[0]), convert(j, 1, x[1]), to, 8*j)
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
	convert := f.load(k, table, 1)
	gather := coefficients(k, mask, 0, 3, 2)
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
		for c := range 3 {
			for h := range x {
				k.op("VTBL %v.B16, [%v.B16], %v.B16", gather[c][h], pixels[h], x[h])
			}
			k.op("ADD %v<<%d, %v, %v", i, s.shift, dst[c], to)
			emit(convert(c, 0, x[0]), convert(c, 1, x[1]), to, 0)
		}
	})
	return k.finish()
}
