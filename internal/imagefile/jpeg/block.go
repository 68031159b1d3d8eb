package jpeg

import "encoding/binary"

// zigzag gives the place in a block, by rows, of the k-th coefficient (T.81 figure A.6).
// A run that leads out of the block ends at its first place, which is filled last.
var zigzag = makeZigzag()

// makeZigzag walks the diagonals of a block. Entries from 64 on are 0: a corrupt run of coefficients can end there, and
// the loop needs no check for it.
func makeZigzag() (z [256]uint8) {
	x, y, up := 0, 0, true
	for k := range 64 {
		z[k] = uint8(8*y + x)
		switch {
		case up && x == 7:
			y, up = y+1, false
		case up && y == 0:
			x, up = x+1, false
		case up:
			x, y = x+1, y-1
		case y == 7:
			x, up = x+1, true
		case x == 0:
			y, up = y+1, true
		default:
			x, y = x-1, y+1
		}
	}
	return z
}

// difference decodes the first coefficient of a sequential block, less the one of the block
// before. It returns false if the bits are not a code.
func (r *bitReader) difference(dc *huffTable) (int32, bool) {
	if r.n < 32 {
		r.fill()
	}
	if e := dc.fast[r.acc>>(64-fastBits)]; e != 0 {
		r.acc <<= e.length()
		r.n -= int(e.length())
		return int32(e.value()), true
	}
	s, ok := r.symbol(dc)
	return extend(r.bits(int(s&15)), int(s&15)), ok && s <= 15
}

// block decodes the other coefficients of a sequential block into b, which is zero; it may
// change b[0], which is for the caller to set. any reports whether there are some; ok is false if the bits are not a
// code or a run leads out of the block.
//
// This loop is two thirds of a decoder's time: the reader's state lives in registers, and
// bits are fetched for five entries at once, since a branch on how many are left would be
// guessed wrong every few entries.
func (r *bitReader) block(b *[64]int16, ac *huffTable) (any, ok bool) {
	acc, n := r.acc, r.n
	k := uint8(0) // the last coefficient so far
	for {
		if p := r.pos; p+8 <= len(r.data) {
			w := binary.BigEndian.Uint64(r.data[p:])
			if hasFF(w) {
				goto slowFill
			}
			acc |= w >> (n & 63)
			r.pos = p + (63-n)>>3
			n |= 56
			goto filled
		}
	slowFill:
		r.acc, r.n = acc, n
		r.fill()
		acc, n = r.acc, r.n
	filled:
		for range 5 {
			e, before := ac.fast[acc>>(64-fastBits)], acc
			if e == 0 {
				r.acc, r.n = acc, n
				if k, ok = r.long(b, ac, k); !ok || k >= 63 {
					return true, ok && (k == 63 || k == longEnd)
				}
				acc, n = r.acc, r.n
				break
			}
			acc <<= e.length()
			n -= int(e.length())
			k += e.step()
			last := k + e.step2()
			b[zigzag[last]&63] = e.value2() // where last is k, the next line puts it right
			b[zigzag[k]&63] = e.value()
			if last >= 63 {
				r.acc, r.n = acc, n
				return r.ended(e, before, ac, k, last)
			}
			k = last
		}
	}
}

// ended finishes a block whose entry e, found in the bits before, led from its first to its
// second coefficient, k and last, the 63rd or beyond.
func (r *bitReader) ended(e fastEntry, before uint64, ac *huffTable, k, last uint8) (any, ok bool) {
	if k == 63 && last > k { // the second is of the next block
		r.again(before, e, ac)
		return true, true
	}
	if e.ends() {
		return last > fastEnd, last < 2*fastEnd
	}
	return true, last == 63
}

// again puts the second coefficient of e back; acc held both.
func (r *bitReader) again(acc uint64, e fastEntry, t *huffTable) {
	sym, length := t.symbol(acc)
	length += int(sym & 15)
	r.acc = acc << length
	r.n += int(e.length()) - length
}

// longEnd is the value of long for the end of a block.
const longEnd = 255

// long decodes one coefficient after k, or the end, for which the fast table is too small.
func (r *bitReader) long(b *[64]int16, ac *huffTable, k uint8) (last uint8, ok bool) {
	sym, ok := r.symbol(ac)
	size := int(sym & 15)
	if size == 0 && sym != 0xF0 {
		return longEnd, ok
	}
	k += sym>>4 + 1
	b[zigzag[k]&63] = int16(extend(r.bits(size), size))
	return k, ok
}

// The inverse transform is libjpeg's jpeg_idct_islow (jidctint.c) in the arithmetic of its
// SIMD version, which agrees with it on all coefficients that an encoder makes: 16-bit
// sums and products wrap, the result of the first pass saturates to 16 bits.

// Constants of jidctint.c: FIX(x) is x * 2^13, rounded.
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

// idctPair transforms two blocks, dequantising them, to 8 rows of 16 samples in dst.
func idctPair(dst []byte, stride int, coefs *[128]int16, quant *[64]uint16) {
	if idctPairFast(dst, stride, coefs, quant) {
		return
	}
	for b := range 2 {
		var in, mid [64]int16
		for i := range in {
			in[i] = coefs[64*b+i] * int16(quant[i])
		}
		for x := range 8 {
			idct1D(mid[x:], in[x:], 11)
		}
		in = transposed(&mid)
		for y := range 8 {
			idct1D(mid[y:], in[y:], 18)
		}
		out := dst[8*b:]
		for y := range 8 {
			for x := range 8 {
				out[y*stride+x] = byte(max(-128, min(mid[8*x+y], 127)) + 128)
			}
		}
	}
}

func transposed(m *[64]int16) (t [64]int16) {
	for i, v := range m {
		t[i%8*8+i/8] = v
	}
	return t
}

// idct1D transforms the column of eight values in[0], in[8], ... and scales the result down
// by shift bits, rounding.
func idct1D(out, in []int16, shift int) {
	sum := func(a, b int16) int32 { return int32(a + b) } // wraps
	i1, i2, i3 := int32(in[8]), int32(in[16]), int32(in[24])
	i5, i6, i7 := int32(in[40]), int32(in[48]), int32(in[56])

	e2 := i2*fix0541196100 + i6*(fix0541196100-fix1847759065)
	e3 := i2*(fix0541196100+fix0765366865) + i6*fix0541196100
	e0 := sum(in[0], in[32]) << 13
	e1 := sum(in[0], -in[32]) << 13
	even := [4]int32{e0 + e3, e1 + e2, e1 - e2, e0 - e3}

	z3, z4 := sum(in[56], in[24]), sum(in[40], in[8])
	y3 := z3*(fix1175875602-fix1961570560) + z4*fix1175875602
	y4 := z3*fix1175875602 + z4*(fix1175875602-fix0390180644)
	odd := [4]int32{
		i7*-fix0899976223 + i1*(fix1501321110-fix0899976223) + y4,
		i5*-fix2562915447 + i3*(fix3072711026-fix2562915447) + y3,
		i5*(fix2053119869-fix2562915447) + i3*-fix2562915447 + y4,
		i7*(fix0298631336-fix0899976223) + i1*-fix0899976223 + y3,
	}
	half := int32(1) << (shift - 1)
	for k := range 4 {
		out[8*k] = saturate((even[k] + odd[k] + half) >> shift)
		out[56-8*k] = saturate((even[k] - odd[k] + half) >> shift)
	}
}

func saturate(v int32) int16 { return int16(max(-1<<15, min(v, 1<<15-1))) }

// flatPair is idctPair for two blocks that have only a first coefficient.
func flatPair(dst []byte, stride int, coefs *[128]int16, quant int32) {
	a, b := flatSample(coefs[0], quant), flatSample(coefs[64], quant)
	for y := range 8 {
		row := dst[y*stride:][:16]
		binary.LittleEndian.PutUint64(row, a)
		binary.LittleEndian.PutUint64(row[8:], b)
	}
}

// flatSample returns the one sample of such a block, eight times.
func flatSample(coef int16, quant int32) uint64 {
	v := int32(int16(int32(coef) * quant))
	return uint64(clamp((v+4)>>3+128)) * 0x0101010101010101
}
