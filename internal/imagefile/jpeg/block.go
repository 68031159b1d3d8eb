package jpeg

import "encoding/binary"

// zigzag gives the place in a block, by rows, of the k-th coefficient of the stream (T.81 figure
// A.6). It has 256 entries so that any uint8 is a valid index: a corrupt run of zeros can lead to k
// = 188 at most. Entries from 64 on are 0, so that such a run writes to the first coefficient,
// which the caller sets afterwards.
var zigzag = makeZigzag()

// makeZigzag walks the diagonals of a block, alternately up and down.
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

// difference decodes the first (DC) coefficient of a block, as its difference to the first
// coefficient of the component's block before. It returns false if the bits are not a code.
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

// block decodes the other (AC) coefficients of a block of a sequential scan into b, which must be
// all zero. It may write to b[0], which the caller sets afterwards. any reports whether there is a
// coefficient in the stream; ok is false if the bits are not a code or a run leads out of the
// block.
//
// This loop is two thirds of a decoder's time. So the reader's state lives in registers (acc and
// n), and bits are fetched for five entries at once: 5 entries of at most 11 bits fit into the 56
// that a fill guarantees, and a branch on how many are left would be mispredicted every few
// entries.
func (r *bitReader) block(b *[64]int16, ac *huffTable) (any, ok bool) {
	acc, n := r.acc, r.n
	k := uint8(0) // the place, in the order of zigzag, of the last coefficient so far
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
			b[zigzag[last]&63] = e.value2() // with one coefficient last is k, and the next line overwrites this value
			b[zigzag[k]&63] = e.value()
			if last >= 63 {
				r.acc, r.n = acc, n
				return r.ended(e, before, ac, k, last)
			}
			k = last
		}
	}
}

// ended finishes a block that entry e ended. before is acc as it was before e; k and last are the
// places of its first and second coefficient, and last is 63 or more.
//
// Three cases are valid: the first coefficient fills the block (k = 63), and what was taken for a
// second belongs to the next block; e holds the code for the end of the block; or the last
// coefficient is number 63, after which no such code comes. Any other place is beyond the block.
func (r *bitReader) ended(e fastEntry, before uint64, ac *huffTable, k, last uint8) (any, ok bool) {
	if k == 63 && last > k { // what follows is of the next block
		r.again(before, e, ac)
		return true, true
	}
	if e.ends() {
		return last > fastEnd, last < 2*fastEnd
	}
	return true, last == 63
}

// again gives the second coefficient of e back to the stream: it sets the reader to the bit after
// the first coefficient. acc is the reader's acc before e was read.
func (r *bitReader) again(acc uint64, e fastEntry, t *huffTable) {
	sym, length := t.symbol(acc)
	length += int(sym & 15)
	r.acc = acc << length
	r.n += int(e.length()) - length
}

// longEnd is what long returns as the place where the block ends. No coefficient has this place.
const longEnd = 255

// long decodes one coefficient after place k, or the end of the block, whose code and value are too
// long for the fast table. It returns the coefficient's place.
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

// Constants of jidctint.c: fix0298631336 is FIX(0.298631336), 0.298631336 * 2^13, rounded.
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

// idctPair dequantises and transforms two blocks that lie next to each other, and writes 8 rows of
// 16 samples to dst. quant is by rows, as coefs is. It takes two blocks since a register of AVX2
// holds a row of both.
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

// transposed returns the block m with rows and columns exchanged.
func transposed(m *[64]int16) (t [64]int16) {
	for i, v := range m {
		t[i%8*8+i/8] = v
	}
	return t
}

// idct1D transforms the column of eight values in[0], in[8], ... to out[0], out[8], ... and divides
// the result by 1 << shift, rounding. The two passes of a block use 11 and 18.
func idct1D(out, in []int16, shift int) {
	sum := func(a, b int16) int32 { return int32(a + b) } // 16-bit addition, which wraps as in libjpeg's SIMD code
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

// saturate limits v to 16 bits.
func saturate(v int32) int16 { return int16(max(-1<<15, min(v, 1<<15-1))) }

// flatPair is idctPair for two blocks that have only a first coefficient, as most blocks of smooth
// areas and of chroma do: all 64 samples of such a block are equal. quant is the first of the
// table.
func flatPair(dst []byte, stride int, coefs *[128]int16, quant int32) {
	a, b := flatSample(coefs[0], quant), flatSample(coefs[64], quant)
	for y := range 8 {
		row := dst[y*stride:][:16]
		binary.LittleEndian.PutUint64(row, a)
		binary.LittleEndian.PutUint64(row[8:], b)
	}
}

// flatSample returns the sample of a block whose only coefficient is coef, as eight equal bytes.
// The two passes of the transform come to a division by 8 that rounds half up.
func flatSample(coef int16, quant int32) uint64 {
	v := int32(int16(int32(coef) * quant))
	return uint64(clamp((v+4)>>3+128)) * 0x0101010101010101
}
